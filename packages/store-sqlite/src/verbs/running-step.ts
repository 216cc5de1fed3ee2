import {
  type Attempt,
  type AttemptSettlement,
  type AttemptStart,
  GatewayError,
  type StepOutcome,
} from "@tollgate/core/store";
import { errorToRow, insertError, outcomeOf, readRow, settling } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import type { Charge } from "./holds.ts";

/** A Step and its Session as settling it, or opening its next attempt, needs them. */
export interface RunningStep {
  readonly id: string;
  /** Null while it is open. */
  readonly outcome: StepOutcome | null;
  readonly owner: {
    readonly organizationId: string;
    readonly userId: string;
    readonly keyId: string;
  };
  readonly processId: string;
  readonly sessionId: string;
  readonly head: Uint8Array;
  readonly length: number;
  readonly openedSession: boolean;
  readonly session: {
    readonly head: Uint8Array;
    readonly length: number;
    readonly inFlight: boolean;
  };
  readonly holds: number;
  readonly attempt: number;
  /** The attempts before the running one. */
  earlierAttempts(): readonly Attempt[];
  runningAttempt(): AttemptStart;
  /** What ended attempts were charged while their holds were kept. */
  readonly carried: Charge;
}

export function findStep(
  transaction: Transaction,
  organizationId: string,
  id: string,
): RunningStep {
  const row = transaction.get(settling.step, { organization_id: organizationId, id });
  if (row === undefined) throw new GatewayError("step_not_found", "There is no such Step.");
  const read = readRow(row);
  const outcome = read.text("outcome");
  return {
    id,
    outcome: outcome === "open" ? null : outcomeOf(outcome),
    owner: { organizationId, userId: read.text("user_id"), keyId: read.text("key_id") },
    processId: read.text("process_id"),
    sessionId: read.text("session_id"),
    head: read.bytes("head"),
    length: read.integer("length"),
    openedSession: read.integer("opened_session") === 1,
    session: {
      head: read.bytes("session_head"),
      length: read.integer("session_length"),
      inFlight: read.integer("in_flight") === 1,
    },
    holds: read.integer("holds"),
    attempt: read.integer("attempt"),
    earlierAttempts: () => read.jsonOrNull<readonly Attempt[]>("earlier_attempts") ?? [],
    runningAttempt: () => read.json("attempt_start"),
    carried: { usd: read.integer("carried_usd"), tokens: read.integer("carried_tokens") },
  };
}

/** Refuses the end of an attempt that is not the one that runs. */
export function requireRunning(step: RunningStep, { number }: AttemptSettlement): void {
  if (number !== step.attempt)
    throw new GatewayError("invalid_argument", `Attempt ${number} is not the one that runs.`);
}

/** Records what the provider said of an attempt that failed. */
export function recordError(
  transaction: Transaction,
  { id, sessionId, owner: { organizationId } }: RunningStep,
  ended: AttemptSettlement,
): void {
  const row = errorToRow({ organizationId, stepId: id, sessionId }, ended);
  if (row) transaction.run(insertError, row);
}

export function addCharge(a: Charge, b: Charge): Charge {
  return { usd: a.usd + b.usd, tokens: a.tokens + b.tokens };
}
