import {
  GatewayError,
  type ResponseDraft,
  type SettleStepResult,
  type Step,
  type StepReply,
  type StepSettlement,
} from "@tollgate/core/store";
import { chainHead, chainLength } from "../chain.ts";
import { type Decision, type Operation, unchanged } from "../change.ts";
import { isOwnedBy } from "../is-owned-by.ts";
import type { ResponseRecord, SessionState, StepRecord } from "../records.ts";
import type { View } from "../view.ts";
import { addCharge, endRunningAttempt, errorRecord, requireStep } from "./attempt.ts";
import { CounterDraft, settleHolds } from "./hold.ts";
import { partRecord } from "./part.ts";

/**
 * Settles a Step, once: a later settlement learns how it ended. Its holds become what it spent, its reply joins the
 * Session unless something else took its place, and its response is stored.
 * @throws GatewayError `step_not_found`, or `invalid_argument` for an attempt that does not run, a chain that is none, or
 * a response of another Step or owner
 */
export function settleStep(view: View, settlement: StepSettlement): Decision<SettleStepResult> {
  const { organizationId, stepId, attempt, outcome, reply, response } = settlement;
  const record = requireStep(view, organizationId, stepId);
  const { step } = record;
  if (step.outcome !== null) return unchanged({ settled: false, outcome: step.outcome });
  if (reply && !Number.isInteger(chainLength(reply.chain)))
    throw new GatewayError("invalid_argument", "A reply's chain is made of 32 bytes per message.");
  const attempts = endRunningAttempt(step, attempt);
  if (response) requireOwnResponse(step, response);
  const session = view.session(organizationId, step.sessionId);
  if (!session) throw new TypeError("a Step has no Session");

  const counters = new CounterDraft(view);
  const spent = addCharge(record.carried, attempt.charge);
  const holds = settleHolds(view, counters, record, spent);
  const change: Operation[] = [
    ...(response ? [responseOperation(view, response)] : []),
    ...counters.operations(),
    ...holds,
    ...contentOperations(record, session, settlement),
    { write: "settle step", row: { ...record, step: endedStep(step, attempts, settlement) } },
  ];
  const error = errorRecord(step, attempt);
  if (error) change.push({ write: "insert error", row: error });
  change.push({ write: "insert leaf", row: settlement.leaf });
  return { result: { settled: true, outcome }, change };
}

function endedStep(
  step: Step,
  attempts: Step["attempts"],
  { at, outcome, reason, finishReason, reply }: StepSettlement,
): Step {
  const replyHead = reply && reply.chain.length > 0 ? chainHead(reply.chain) : null;
  return { ...step, settledAt: at, outcome, reason, finishReason, attempts, replyHead };
}

/** What the Step said, and the Session as it leaves it. */
function contentOperations(
  record: StepRecord,
  session: SessionState,
  settlement: StepSettlement,
): readonly Operation[] {
  const { organizationId, sessionId, id: stepId } = record.step;
  const { at, reply, reasoning } = settlement;
  const change: Operation[] = [];
  const joining = reply !== null && joins(record, session, settlement, reply) ? reply.chain : null;
  if (reply) {
    const step = { organizationId, sessionId, stepId, kind: "reply" } as const;
    const position = joining ? record.length : null;
    const place = { position, count: chainLength(reply.chain), chain: reply.chain };
    change.push({ write: "insert part", row: partRecord(step, reply, place) });
  }
  if (reasoning) {
    const step = { organizationId, sessionId, stepId, kind: "reasoning" } as const;
    change.push({ write: "insert part", row: partRecord(step, reasoning) });
  }
  const row: SessionState = {
    ...session,
    head: joining ? chainHead(joining) : session.head,
    length: session.length + (joining ? chainLength(joining) : 0),
    updatedAt: at,
    inFlight: session.inFlight && !record.openedSession && !joining,
  };
  change.push({ write: "update session", row });
  return change;
}

/** A reply becomes part of the Session unless something else took its place while it was under way. */
function joins(
  { step, length }: StepRecord,
  session: SessionState,
  { outcome }: StepSettlement,
  { chain }: StepReply,
): boolean {
  return (
    outcome === "completed" &&
    chain.length > 0 &&
    session.length === length &&
    session.head === step.head
  );
}

function requireOwnResponse(step: Step, response: ResponseDraft): void {
  if (response.stepId !== step.id || !isOwnedBy(step, response))
    throw new GatewayError("invalid_argument", "The response is not its Step's and its owner's.");
}

const nothingInherited = Buffer.from("[]");

/** Linked to the response it continues, as long as that is kept; then no message is stored twice. */
function responseOperation(view: View, draft: ResponseDraft): Operation {
  const { organizationId, previousResponseId } = draft;
  const previous =
    previousResponseId === null ? null : view.response(organizationId, previousResponseId);
  const builtOn = previous && isOwnedBy(draft, previous) ? previousResponseId : null;
  const row: ResponseRecord = {
    ...draft,
    builtOn,
    inherited: builtOn === null ? draft.inherited : nothingInherited,
  };
  return { write: "insert response", row };
}
