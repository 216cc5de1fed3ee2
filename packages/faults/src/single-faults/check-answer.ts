import type { Store } from "@tollgate/core/store";
import { type ReceivedAnswer, referenceIn } from "../histories/ask.ts";

/** What does not hold of an answer: its status, or that what is shown complete is settled as completed. */
export async function answerProblems(
  answer: ReceivedAnswer,
  statuses: readonly number[],
  { store, organizationId }: { readonly store: Store; readonly organizationId: string },
): Promise<readonly string[]> {
  const { status, body } = answer;
  const isUnavailable = status === 503 && body.includes('"evidence_unavailable"');
  const hasLeft = status === 0;
  if (!isUnavailable && !hasLeft && !statuses.includes(status))
    return [`answered ${status} ${body}`];
  const reference = referenceIn(answer);
  if (reference === null) return [];
  const step = await store.steps.get(organizationId, stepOf(reference.id));
  return step?.outcome === "completed" ? [] : [`a whole answer of a Step that is ${step?.outcome}`];
}

/** Answers are named for their Steps. */
function stepOf(id: string): string {
  const name = id.replace(/^(chatcmpl-|resp_)/, "");
  return name.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
