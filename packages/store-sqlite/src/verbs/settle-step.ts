import type { SettleResult, StepReply, StepSettlement } from "@tollgate/core/store";
import {
  attemptEndOf,
  besidePosition,
  leafToRow,
  opening,
  reasoningPosition,
  settling,
} from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { appendToStep } from "./append-to-step.ts";
import { chainHead, chainLength } from "./chain.ts";
import { settleHolds } from "./holds.ts";
import {
  addCharge,
  findStep,
  type RunningStep,
  recordError,
  requireRunning,
} from "./running-step.ts";
import { storeResponse } from "./store-response.ts";

export function settleStep(transaction: Transaction, settlement: StepSettlement): SettleResult {
  const { organizationId, stepId, attempt, outcome, reply, response } = settlement;
  const step = findStep(transaction, organizationId, stepId);
  if (step.outcome !== null) return { settled: false, outcome: step.outcome };
  requireRunning(step, attempt);

  if (step.holds > 0)
    settleHolds(transaction, { organizationId, stepId }, addCharge(step.carried, attempt.charge));
  const joining = reply && joins(step, settlement, reply) ? reply : null;
  if (reply)
    appendReply(transaction, settlement, step, reply, joining ? step.length : besidePosition);
  appendReasoning(transaction, settlement, step);
  touchSession(transaction, settlement, step, joining);
  if (response) storeResponse(transaction, step, response);
  recordError(transaction, step, attempt);
  endStep(transaction, settlement);
  transaction.run(settling.closeStep, {
    process_id: step.processId,
    organization_id: organizationId,
    id: stepId,
  });
  transaction.run(opening.insertLeaf, leafToRow(settlement.leaf, transaction.next()));
  return { settled: true, outcome };
}

/** A reply becomes part of the Session unless something else took its place while it was under way. */
function joins(step: RunningStep, { outcome }: StepSettlement, { chain }: StepReply): boolean {
  return (
    outcome === "completed" &&
    chain.length > 0 &&
    step.session.length === step.length &&
    Buffer.compare(step.session.head, step.head) === 0
  );
}

function appendReply(
  transaction: Transaction,
  { organizationId, stepId }: StepSettlement,
  { sessionId }: RunningStep,
  reply: StepReply,
  position: number,
): void {
  transaction.run(opening.insertPart, {
    organization_id: organizationId,
    session_id: sessionId,
    position,
    step_id: stepId,
    kind: "reply",
    count: chainLength(reply.chain),
    chain: reply.chain,
    content: reply.content,
    salt: reply.contentSalt,
    commitment: reply.contentCommitment,
  });
}

function appendReasoning(
  transaction: Transaction,
  { organizationId, stepId, reasoning }: StepSettlement,
  { sessionId }: RunningStep,
): void {
  if (!reasoning) return;
  appendToStep(
    transaction,
    { organizationId, sessionId, stepId },
    {
      ...reasoning,
      position: reasoningPosition,
      kind: "reasoning",
    },
  );
}

function touchSession(
  transaction: Transaction,
  { organizationId, at }: StepSettlement,
  { sessionId, session, openedSession }: RunningStep,
  joining: StepReply | null,
): void {
  transaction.run(settling.touchSession, {
    organization_id: organizationId,
    id: sessionId,
    head: joining ? chainHead(joining.chain) : session.head,
    length: session.length + (joining ? chainLength(joining.chain) : 0),
    updated: transaction.next(),
    updated_at: at,
    in_flight: session.inFlight && !openedSession && !joining ? 1 : 0,
  });
}

function endStep(transaction: Transaction, settlement: StepSettlement): void {
  const { organizationId, stepId, at, outcome, reason, finishReason, attempt, reply } = settlement;
  transaction.run(settling.settleStep, {
    organization_id: organizationId,
    id: stepId,
    settled_at: at,
    outcome,
    reason,
    finish_reason: finishReason,
    reply_head: reply && reply.chain.length > 0 ? chainHead(reply.chain) : null,
    host: attempt.host,
    attempt_end: JSON.stringify(attemptEndOf(attempt)),
  });
}
