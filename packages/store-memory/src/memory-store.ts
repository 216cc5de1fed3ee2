import { read, type Schema, z } from "@tollgate/core/schemas";
import type { Store } from "@tollgate/core/store";
import { correct, openAttempt, openStep, recordRefusal, settleStep } from "@tollgate/store-engine";
import {
  createAdminTokenRepository,
  createBudgetRepository,
  createConnectionRepository,
  createKeyRepository,
  createRateLimitRepository,
} from "./administration.ts";
import { createCarryOut } from "./apply-change.ts";
import { createCheckpointRepository } from "./checkpoints.ts";
import {
  createDecisionRepository,
  createEvidenceRepository,
  createResponseRepository,
  createSessionRepository,
  createStepRepository,
  createUsageRepository,
  lapsedSteps,
  renewLease,
} from "./history.ts";
import { createState } from "./state.ts";

/** A memory store has no options. An option such as a file name is probably meant for another store. */
export type MemoryStoreOptions = Readonly<Record<string, never>>;

const optionsSchema: Schema<object> = z.strictObject({});

/**
 * Creates a store that keeps everything in the memory of this process, for tests and trials. It implements the whole
 * contract, including atomic verbs. Its data is lost with the process, is not shared with other processes, and grows with
 * every Step. Verbs reject with a `GatewayError`: `step_not_found` for an unknown Step, `invalid_argument` for a cursor of
 * another list, a chain that does not fit its messages or an id that is taken.
 * @throws GatewayError `invalid_configuration` for any option
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  read(optionsSchema, options, { code: "invalid_configuration", noun: "option" });
  const state = createState();
  const carryOut = createCarryOut(state);
  return {
    contract: 1,
    async migrate() {},
    async close() {},
    // It has no connection, and nothing waits.
    status: () => ({ waiting: 0, inUse: 0, most: 0 }),
    // `async` turns an exception into a rejection.
    openStep: async (intent) => carryOut((view) => openStep(view, intent)),
    openAttempt: async (intent) => carryOut((view) => openAttempt(view, intent)),
    settleStep: async (settlement) => carryOut((view) => settleStep(view, settlement)),
    correct: async (intent) => carryOut((view) => correct(view, intent)),
    recordRefusal: async (refusal) => carryOut((view) => recordRefusal(view, refusal)),
    renewLease: async (renewal) => renewLease(state, renewal),
    lapsedSteps: async (query) => lapsedSteps(state, query),
    keys: createKeyRepository(state),
    connections: createConnectionRepository(state),
    sessions: createSessionRepository(state, carryOut),
    steps: createStepRepository(state, carryOut),
    decisions: createDecisionRepository(state),
    budgets: createBudgetRepository(state),
    rateLimits: createRateLimitRepository(state),
    adminTokens: createAdminTokenRepository(state),
    responses: createResponseRepository(state, carryOut),
    evidence: createEvidenceRepository(state),
    checkpoints: createCheckpointRepository(state),
    usage: createUsageRepository(state),
  };
}
