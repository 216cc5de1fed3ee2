import {
  type Attempt,
  type AttemptSettlement,
  type AttemptStart,
  GatewayError,
  type StepOutcome,
} from "@tollgate/core/store";
import { outcomeOf, readRow } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { locking } from "../statements/locking.ts";
import type { Charge } from "./holds.ts";

/** A Step as opening its next attempt needs it. */
export interface RunningStep {
  readonly id: string;
  /** Null while it is open. */
  readonly outcome: StepOutcome | null;
  readonly owner: {
    readonly organizationId: string;
    readonly userId: string;
    readonly keyId: string;
  };
  readonly sessionId: string;
  readonly holds: number;
  readonly attempt: number;
  /** The attempts before the running one. */
  earlierAttempts(): readonly Attempt[];
  runningAttempt(): AttemptStart;
  /** What ended attempts were charged while their holds were kept. */
  readonly carried: Charge;
}

export async function findStep(
  transaction: Transaction,
  organizationId: string,
  id: string,
): Promise<RunningStep> {
  const row = await transaction.get(locking.step, { organization_id: organizationId, id });
  if (row === undefined) throw noSuchStep();
  const read = readRow(row);
  const outcome = read.text("outcome");
  return {
    id,
    outcome: outcome === "open" ? null : outcomeOf(outcome),
    owner: { organizationId, userId: read.text("user_id"), keyId: read.text("key_id") },
    sessionId: read.text("session_id"),
    holds: read.integer("holds"),
    attempt: read.integer("attempt"),
    earlierAttempts: () => read.jsonOrNull<readonly Attempt[]>("earlier_attempts") ?? [],
    runningAttempt: () => read.json("attempt_start"),
    carried: { usd: read.integer("carried_usd"), tokens: read.integer("carried_tokens") },
  };
}

/** Refuses the end of an attempt that is not the one that runs. */
export function requireRunning(step: RunningStep, { number }: AttemptSettlement): void {
  if (number !== step.attempt) throw notRunning({ number });
}

export function noSuchStep(): GatewayError {
  return new GatewayError("step_not_found", "There is no such Step.");
}

export function notRunning({ number }: Pick<AttemptSettlement, "number">): GatewayError {
  return new GatewayError("invalid_argument", `Attempt ${number} is not the one that runs.`);
}

export function addCharge(a: Charge, b: Charge): Charge {
  return { usd: a.usd + b.usd, tokens: a.tokens + b.tokens };
}
