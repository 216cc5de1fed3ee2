import type { AttemptIntent, Refusal, StepIntent, StepSettlement } from "../contracts/store.ts";
import type { Hold } from "../domain/budget.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import { type LeafTemplate, leafHash } from "../domain/leaf-template.ts";
import type { PolicyDecision } from "../domain/policy-decision.ts";
import type { Price } from "../domain/price.ts";
import type { AttemptEnd, AttemptStart } from "../domain/step.ts";
import { type Json, stableJson } from "../kernel/stable-json.ts";

interface LeafHead {
  readonly id: string;
  readonly organizationId: string;
  readonly kind: LeafKind;
  readonly at: number;
}

/** A leaf whose meta is canonical JSON: opaque ids, counts and digests, never free text. */
export function createLeaf(head: LeafHead, facts: { readonly [name: string]: Json }): EvidenceLeaf {
  const meta = stableJson(members(head, facts));
  return { ...head, meta, hash: leafHash(meta) };
}

/** The leaf of an opened Step, with a gap for what the store assigns; `assignment` is the first member in order. */
export function openedLeaf(id: string, intent: Omit<StepIntent, "leaf">): LeafTemplate {
  const { owner, transcript } = intent;
  const head: LeafHead = {
    id,
    organizationId: owner.organizationId,
    kind: "step.opened",
    at: intent.at,
  };
  const rest = members(head, {
    attempt: attemptFacts(intent.attempt),
    chain: {
      head: Buffer.from(transcript.chain.subarray(-32)).toString("hex"),
      length: transcript.chain.length / 32,
    },
    dataClass: intent.dataClass,
    decision: decisionFacts(intent.decision),
    endpoint: intent.endpoint,
    holds: intent.holds.map(holdFacts),
    instructions: intent.instructions && hex(intent.instructions.contentCommitment),
    key: owner.keyId,
    requestedModel: intent.requestedModel,
    source: intent.source,
    step: intent.stepId,
    stepNumber: intent.stepNumber,
    stream: intent.stream,
    user: owner.userId,
  });
  return { ...head, before: '{"assignment":', after: `,${stableJson(rest).slice(1)}` };
}

export function attemptLeaf(id: string, intent: Omit<AttemptIntent, "leaf">): EvidenceLeaf {
  return createLeaf(
    { id, organizationId: intent.organizationId, kind: "attempt.opened", at: intent.at },
    {
      attempt: attemptFacts(intent.attempt),
      decision: intent.decision && decisionFacts(intent.decision),
      ended: { number: intent.ended.number, ...endFacts(intent.ended) },
      holds: intent.holds?.map(holdFacts) ?? null,
      step: intent.stepId,
    },
  );
}

export function settledLeaf(id: string, settlement: Omit<StepSettlement, "leaf">): EvidenceLeaf {
  const { reply } = settlement;
  return createLeaf(
    { id, organizationId: settlement.organizationId, kind: "step.settled", at: settlement.at },
    {
      attempt: { number: settlement.attempt.number, ...endFacts(settlement.attempt) },
      finishReason: settlement.finishReason,
      outcome: settlement.outcome,
      reason: settlement.reason,
      reply: reply && {
        commitment: hex(reply.contentCommitment),
        head:
          reply.chain.length === 0 ? null : Buffer.from(reply.chain.subarray(-32)).toString("hex"),
      },
      response: settlement.response?.id ?? null,
      step: settlement.stepId,
    },
  );
}

export function refusalLeaf(id: string, refusal: Omit<Refusal, "leaf">): EvidenceLeaf {
  const { decision, owner } = refusal;
  return createLeaf(
    { id, organizationId: owner.organizationId, kind: "decision", at: decision.at },
    {
      dataClass: decision.facts.dataClass,
      decision: decisionFacts(decision),
      key: owner.keyId,
      model: `${decision.facts.gateway}/${decision.facts.vendor}/${decision.facts.model}`,
      user: owner.userId,
    },
  );
}

function members(
  head: LeafHead,
  facts: { readonly [name: string]: Json },
): { readonly [name: string]: Json } {
  return {
    ...facts,
    at: head.at,
    id: head.id,
    kind: head.kind,
    organization: head.organizationId,
    version: 1,
  };
}

function decisionFacts(decision: PolicyDecision): Json {
  return {
    effect: decision.effect,
    first: decision.firstDecisionId,
    id: decision.id,
    policy: decision.policyVersion,
    rules: decision.rules,
  };
}

function attemptFacts(attempt: AttemptStart): Json {
  return {
    connection: attempt.connection,
    estimatedInputTokens: attempt.estimatedInputTokens,
    estimatedOutputTokens: attempt.estimatedOutputTokens,
    gateway: attempt.gateway,
    model: attempt.model,
    number: attempt.number,
    price: attempt.price && priceFacts(attempt.price),
    vendor: attempt.vendor,
  };
}

function priceFacts({ longPrompt, ...price }: Price): Json {
  return { ...price, longPrompt: longPrompt && { ...longPrompt } };
}

function endFacts(end: AttemptEnd): { readonly [name: string]: Json } {
  return {
    basis: end.usageBasis,
    bodySha256: end.bodySha256,
    costNanoUsd: end.costNanoUsd,
    host: end.host,
    outcome: end.outcome,
    priceSource: end.priceSource,
    reason: end.reason,
    usage: { ...end.usage },
  };
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

function holdFacts(hold: Hold): Json {
  return { ...hold };
}
