import { read, type Schema, z } from "@tollgate/core/schemas";
import type { Store } from "@tollgate/core/store";
import { correct, openAttempt, openStep, recordRefusal, settleStep } from "@tollgate/store-engine";
import { createBudgetRepository } from "./budget-repository.ts";
import { createCarryOut } from "./carry-out.ts";
import { createConnectionRepository } from "./connection-repository.ts";
import { createEvidenceRepository } from "./evidence-repository.ts";
import { createKeyRepository } from "./key-repository.ts";
import { lapsedSteps, renewLease } from "./leases.ts";
import { createResponseRepository } from "./response-repository.ts";
import { createSessionRepository } from "./session-repository.ts";
import { createState } from "./state.ts";
import { createDecisionRepository, createStepRepository } from "./step-repository.ts";

/** A memory store has no options: passing one, such as a file name, is probably meant for another store. */
export type MemoryStoreOptions = Readonly<Record<string, never>>;

const optionsSchema: Schema<object> = z.strictObject({});

/**
 * Creates a store that keeps everything in this process's memory, for tests and trials. It implements the whole
 * contract, atomic verbs included, but nothing outlives the process, no other process sees it, and it grows with
 * every Step that is kept. Verbs reject with a `GatewayError`: `step_not_found` for a Step it does not have,
 * `invalid_argument` for a cursor of another list, a chain that does not fit its messages or an id that is taken.
 * @throws GatewayError `invalid_configuration` for an option
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  read(optionsSchema, options, { code: "invalid_configuration", noun: "option" });
  const state = createState();
  const carryOut = createCarryOut(state);
  return {
    contract: 1,
    async migrate() {},
    async close() {},
    // `async` turns what a verb throws into a rejection.
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
    responses: createResponseRepository(state, carryOut),
    evidence: createEvidenceRepository(state),
  };
}
