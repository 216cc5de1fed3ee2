import {
  type AttemptSettlement,
  commitContent,
  type EvidenceLeaf,
  type StepIntent,
  type StepReply,
  type StepSettlement,
} from "@tollgate/core/store";
import { contentOf, sha256, type TestMessage } from "./chain.ts";

export type SettlementOverrides = Partial<Omit<StepSettlement, "reply" | "attempt">> & {
  readonly attempt?: Partial<AttemptSettlement>;
  /** The messages of the reply. Null for none. */
  readonly reply?: readonly TestMessage[] | null;
  /** A reply that never joins has no chain. */
  readonly joins?: boolean;
};

/** The settlement of an attempt that cost 60 nanodollars and used 7 tokens. */
export function attemptSettlement(
  number: number,
  overrides: Partial<AttemptSettlement> = {},
): AttemptSettlement {
  return {
    number,
    outcome: "completed",
    reason: null,
    host: "upstream.example",
    bodySha256: "ab".repeat(32),
    providerRequestId: "request-1",
    providerModel: "echo-1",
    usage: { promptTokens: 4, completionTokens: 3, totalTokens: 7, cachedTokens: 0 },
    usageBasis: "reported",
    costBasis: "reported",
    reportedCostNanoUsd: null,
    serviceTier: null,
    costNanoUsd: 60,
    priceSource: "custom",
    durationMs: 120,
    timeToFirstTokenMs: 30,
    toolCalls: 1,
    error: null,
    charge: { usd: 60, tokens: 7 },
    ...overrides,
  };
}

interface SettlementParts {
  readonly at: number;
  readonly leaf: EvidenceLeaf;
  readonly overrides: SettlementOverrides;
}

export function settlementFor(
  step: StepIntent,
  salt: Uint8Array,
  parts: SettlementParts,
): StepSettlement {
  const { attempt, reply = null, joins = true, ...rest } = parts.overrides;
  const outcome = rest.outcome ?? "completed";
  return {
    organizationId: step.owner.organizationId,
    stepId: step.stepId,
    at: parts.at,
    outcome,
    reason: null,
    finishReason: "stop",
    attempt: attemptSettlement(step.attempt.number, { outcome, ...attempt }),
    reasoning: null,
    response: null,
    claim: null,
    leaf: parts.leaf,
    ...rest,
    reply: reply && replyFor(step, salt, { messages: reply, joins }),
  };
}

function replyFor(
  step: StepIntent,
  salt: Uint8Array,
  { messages, joins }: { readonly messages: readonly TestMessage[]; readonly joins: boolean },
): StepReply {
  let head: Uint8Array = step.transcript?.chain.slice(-32) ?? new Uint8Array();
  const chain = messages.map(({ json }) => {
    head = sha256(head, sha256(salt, json));
    return head;
  });
  const content = contentOf(messages);
  const contentSalt = sha256("reply of ", step.stepId);
  return {
    content: step.transcript?.keep === "full" ? content : null,
    contentSalt,
    contentCommitment: commitContent(contentSalt, content),
    chain: joins ? Buffer.concat(chain) : new Uint8Array(),
  };
}
