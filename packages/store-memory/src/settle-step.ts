import {
  GatewayError,
  type ResponseDraft,
  type SettleResult,
  type Step,
  type StepReply,
  type StepSettlement,
} from "@tollgate/core/store";
import { copyOf } from "./copy-content.ts";
import { isOwnedBy } from "./is-owned-by.ts";
import { addCharge, endRunning, stepRow } from "./open-attempt.ts";
import { chainValueBytes, type State, type StepRow, touchSession } from "./state.ts";
import { settleHolds } from "./step-holds.ts";

export function settleStep(state: State, settlement: StepSettlement): SettleResult {
  const { organizationId, stepId, at, outcome, reason, finishReason } = settlement;
  const row = stepRow(state, organizationId, stepId);
  if (row.step.outcome !== null) return { settled: false, outcome: row.step.outcome };
  if ((settlement.reply?.chain.length ?? 0) % chainValueBytes !== 0)
    throw new GatewayError("invalid_argument", "A reply's chain is made of 32 bytes per message.");
  const attempts = endRunning(row, settlement.attempt);
  const { response } = settlement;
  if (response) {
    requireOwn(row.step, response);
    state.responses.requireFree(response);
  }
  const reply = settlement.reply && {
    ...copyOf(settlement.reply),
    chain: new Uint8Array(settlement.reply.chain),
  };
  const chain = reply ? Buffer.from(reply.chain).toString("hex") : "";

  const draft = state.counters.draft();
  row.holds = settleHolds(draft, row.holds, addCharge(row.carried, settlement.attempt.charge));
  draft.commit();
  row.reply = reply;
  row.reasoning = settlement.reasoning && copyOf(settlement.reasoning);
  row.session.holdsContent ||=
    reply !== null || settlement.reasoning !== null || settlement.attempt.error !== null;
  if (reply && outcome === "completed") join(row, reply, chain);
  const replyHead = chain === "" ? null : chain.slice(-2 * chainValueBytes);
  row.step = { ...row.step, settledAt: at, outcome, reason, finishReason, attempts, replyHead };
  touchSession(state, row.session, at);
  if (row.openSlot !== null) state.openSteps.remove(row.openSlot);
  row.openSlot = null;
  if (response) state.responses.insert(response);
  state.leaves.insert(settlement.leaf);
  return { settled: true, outcome };
}

function requireOwn(step: Step, response: ResponseDraft): void {
  if (response.stepId !== step.id || !isOwnedBy(step, response))
    throw new GatewayError("invalid_argument", "The response is not its Step's and its owner's.");
}

/** The reply becomes part of the Session unless something else took its place while it was under way. */
function join({ id, session, step, length }: StepRow, reply: StepReply, chain: string): void {
  const count = reply.chain.length / chainValueBytes;
  if (count === 0 || session.length !== length || session.head !== step.head) return;
  const { content } = reply;
  session.parts.push({ stepId: id, kind: "reply", from: length, count, content });
  session.chain += chain;
  session.head = chain.slice(-2 * chainValueBytes);
  session.length += count;
}
