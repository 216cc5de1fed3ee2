import {
  GatewayError,
  type ResponseDraft,
  type SettleResult,
  type StepSettlement,
} from "@tollgate/core/store";
import { attemptEndOf, joinMessages } from "@tollgate/store-engine";
import { outcomeOf, responseToRow, type SqlParameters } from "@tollgate/store-sql";
import type { BatchAnswer, BatchedCall } from "../database/batches.ts";
import { noSuchStep, notRunning } from "./running-step.ts";

/** Bytes of one value of a transcript chain. */
const valueBytes = 32;

/** Settles a Step in one round trip, or in two where the response that its own continues is gone. */
export async function settleStep(
  call: BatchedCall,
  settlement: StepSettlement,
): Promise<SettleResult> {
  const { response, reply } = settlement;
  if (reply && reply.chain.length % valueBytes !== 0)
    throw new GatewayError(
      "invalid_argument",
      "The reply's chain needs 32 bytes for each message.",
    );
  if (response) requireOwn(settlement, response);
  const fixed = fixedParameters(settlement);
  const settle = (inherited: Uint8Array | null): Promise<BatchAnswer> =>
    call({ ...fixed, inherited });
  // What came before is read through the response that is continued, so it need not be sent.
  const whole = response && joinMessages([response.inherited]);
  const likely = await settle(response?.previousResponseId === null ? whole : null);
  return resultOf(likely.row.text("result") === "more" ? await settle(whole) : likely, settlement);
}

function resultOf(
  { row, isUnsure }: BatchAnswer,
  { outcome, attempt }: StepSettlement,
): SettleResult {
  switch (row.text("result")) {
    case "settled":
      return { settled: true, outcome };
    case "settled_before": {
      const earlier = outcomeOf(row.text("earlier_outcome"));
      return { settled: isUnsure && earlier === outcome, outcome: earlier };
    }
    case "step_not_found":
      throw noSuchStep();
    case "other_attempt":
      throw notRunning(attempt);
    case "foreign_response":
      throw foreignResponse();
    case "response_taken":
      throw new GatewayError("invalid_argument", "The id for a stored response is taken.");
    default:
      throw new TypeError("the database answered a settlement with something unknown");
  }
}

function requireOwn({ organizationId, stepId }: StepSettlement, response: ResponseDraft): void {
  if (response.stepId !== stepId || response.organizationId !== organizationId)
    throw foreignResponse();
}

function foreignResponse(): GatewayError {
  return new GatewayError("invalid_argument", "The response is not its Step's and its owner's.");
}

function fixedParameters(settlement: StepSettlement): SqlParameters {
  const { organizationId, stepId, attempt, reply, response, leaf } = settlement;
  return {
    ...(response ? responseToRow(response) : noResponse),
    organization_id: organizationId,
    step_id: stepId,
    at: settlement.at,
    outcome: settlement.outcome,
    reason: settlement.reason,
    finish_reason: settlement.finishReason,
    host: attempt.host,
    attempt: attempt.number,
    attempt_end: JSON.stringify(attemptEndOf(attempt)),
    usd: attempt.charge.usd,
    tokens: attempt.charge.tokens,
    error: attempt.error?.content ?? null,
    error_salt: attempt.error?.contentSalt ?? null,
    error_commitment: attempt.error?.contentCommitment ?? null,
    reasoning: settlement.reasoning?.content ?? null,
    reasoning_salt: settlement.reasoning?.contentSalt ?? null,
    reasoning_commitment: settlement.reasoning?.contentCommitment ?? null,
    reply: reply?.content ?? null,
    reply_salt: reply?.contentSalt ?? null,
    reply_commitment: reply?.contentCommitment ?? null,
    reply_chain: reply?.chain ?? null,
    leaf_id: leaf.id,
    leaf_kind: leaf.kind,
    leaf_at: leaf.at,
    meta: leaf.meta,
    hash: leaf.hash,
  };
}

const noResponse: SqlParameters = {
  id: null,
  user_id: null,
  key_id: null,
  session_id: null,
  data_class: null,
  previous_response_id: null,
  created_at: null,
  expires_at: null,
  body: null,
  input: null,
  messages: null,
};
