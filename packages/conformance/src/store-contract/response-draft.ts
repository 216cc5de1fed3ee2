import type { ConversationIntent, ResponseDraft } from "@tollgate/core/store";
import { contentOf, type TestMessage } from "./chain.ts";
import type { Source } from "./step-intent.ts";

export type ResponseOverrides = Partial<Omit<ResponseDraft, "messages" | "inherited">> & {
  /** The messages it adds. `inherited` are the ones before. */
  readonly messages?: readonly TestMessage[];
  readonly inherited?: readonly TestMessage[];
};

/** How long responses of this suite are kept, in milliseconds. */
const retention = 1_000_000;

/** A response to store with a Step's settlement. */
export function responseFor(
  step: ConversationIntent,
  source: Source,
  overrides: ResponseOverrides,
): ResponseDraft {
  const { messages = [], inherited = [], ...rest } = overrides;
  const id = rest.id ?? `resp_${source.id()}`;
  const createdAt = rest.createdAt ?? source.now();
  return {
    ...step.owner,
    id,
    stepId: step.stepId,
    sessionId: step.transcript.newSessionId,
    dataClass: step.dataClass,
    previousResponseId: null,
    createdAt,
    expiresAt: createdAt + retention,
    body: Buffer.from(JSON.stringify({ id, object: "response" })),
    input: Buffer.from(JSON.stringify([{ id: `msg_of_${id}` }])),
    ...rest,
    messages: contentOf(messages),
    inherited: contentOf(inherited),
  };
}
