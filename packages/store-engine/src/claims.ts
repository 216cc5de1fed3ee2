import type { EarlierClaim, Step, StepIntent, StepSettlement } from "@tollgate/core/store";
import type { ClaimName, ClaimRecord, Operation, View, ViewedResponse } from "./model.ts";

/**
 * Claims an idempotency key for a Step: returns the rows to write, or the earlier claim that prevents it. A claim whose
 * Step is open never expires.
 */
export function claimKey(
  view: Pick<View, "claim">,
  intent: StepIntent,
): readonly Operation[] | EarlierClaim {
  const { claim, owner, endpoint, stepId, decision, dataClass, at } = intent;
  if (claim === null) return [];
  const { organizationId, keyId } = owner;
  const key = { organizationId, keyId, endpoint, keySha256: claim.keySha256 };
  const earlier = view.claim(key);
  if (earlier && !isOver(earlier, at)) return found(earlier, claim.requestSha256);
  const row: ClaimRecord = {
    ...key,
    stepId,
    requestSha256: claim.requestSha256,
    decisionId: decision.id,
    dataClass,
    openedAt: at,
    state: "in_progress",
    expiresAt: null,
    answer: null,
  };
  const inserted: Operation = { write: "insert claim", row };
  return earlier ? [{ write: "remove claim", row: earlier }, inserted] : [inserted];
}

function isOver({ expiresAt }: ClaimRecord, at: number): boolean {
  return expiresAt !== null && expiresAt <= at;
}

function found(claim: ClaimRecord, requestSha256: string): EarlierClaim {
  const { stepId, decisionId, dataClass, openedAt, state, answer } = claim;
  const facts = { stepId, decisionId, dataClass, openedAt };
  return claim.requestSha256 === requestSha256
    ? { found: state, ...facts, answer }
    : { found: "mismatch", ...facts, answer: null };
}

/** Settles the claim of a Step. */
export function settleClaim(
  step: Step,
  { claim }: Pick<StepSettlement, "claim">,
): readonly Operation[] {
  const name = claimOf(step);
  if (claim === null || name === null) return [];
  return claim.state === "freed"
    ? [{ write: "remove claim", row: name }]
    : [{ write: "settle claim", row: { ...name, ending: claim } }];
}

/** Drops the answer that the claim of a response's Step keeps. */
export function forgetClaim({
  organizationId,
  keyId,
  stepId,
  idempotencyKeySha256: keySha256,
}: ViewedResponse): readonly Operation[] {
  if (keySha256 === null) return [];
  const row = { organizationId, keyId, endpoint: "responses" as const, keySha256, stepId };
  return [{ write: "forget claim", row }];
}

function claimOf(step: Step): ClaimName | null {
  const { organizationId, keyId, endpoint, id: stepId, idempotencyKeySha256 } = step;
  if (idempotencyKeySha256 === null) return null;
  return { organizationId, keyId, endpoint, keySha256: idempotencyKeySha256, stepId };
}
