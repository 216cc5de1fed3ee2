import type { ErasedTranscripts, RemovedSteps, Sweep } from "../contracts/retention.ts";
import type {
  AttemptIntent,
  AttemptSettlement,
  Refusal,
  StepIntent,
  StepSettlement,
  TranscriptIntent,
} from "../contracts/step-verbs.ts";
import type { Hold } from "../domain/budget.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import { type LeafTemplate, leafHash } from "../domain/leaf-template.ts";
import type { DecisionRefusal, PolicyDecision, TargetChoice } from "../domain/policy-decision.ts";
import type { Price, Rates, TierPrice } from "../domain/price.ts";
import type { AttemptStart } from "../domain/step.ts";
import type { Usage } from "../domain/usage.ts";
import type { Clock } from "../kernel/clock.ts";
import { hexOf } from "../kernel/digest.ts";
import type { IdSource } from "../kernel/ids.ts";
import { type Json, stableJson } from "../kernel/stable-json.ts";

interface LeafHead {
  readonly id: string;
  readonly organizationId: string;
  readonly kind: LeafKind;
  readonly at: number;
}

const version = 1;

/** A leaf whose meta is canonical JSON: opaque ids, counts and digests, never free text. */
export function createLeaf(head: LeafHead, facts: { readonly [name: string]: Json }): EvidenceLeaf {
  const { id, at, kind, organizationId: organization } = head;
  return leafOf(head, stableJson({ ...facts, at, id, kind, organization, version }));
}

interface ChangeSource {
  readonly ids: IdSource;
  readonly clock: Clock;
}

interface ChangeHead extends Pick<LeafHead, "kind" | "organizationId"> {
  readonly actor: string | undefined;
}

/** The leaf of a change that an actor makes now. */
export function changeLeaf(
  { ids, clock }: ChangeSource,
  { actor, ...head }: ChangeHead,
  facts: Parameters<typeof createLeaf>[1],
): EvidenceLeaf {
  return createLeaf(
    { id: ids.uuid(), at: clock.now(), ...head },
    { ...facts, actor: actor ?? null },
  );
}

function leafOf(head: LeafHead, meta: string): EvidenceLeaf {
  return { ...head, meta, hash: leafHash(meta) };
}

// The leaves of the governed path are canonical as written: every object below lists its members in order, and JSON omits
// undefined ones. Sorting them at run time would cost more than hashing them.

type OpenedFacts = Omit<StepIntent, "leaf">;

/** The text of an opened Step's leaf around the values that differ in every Step. */
export interface LeafTexts {
  /** All facts that it states, one after the other. */
  readonly stated: readonly unknown[];
  readonly texts: readonly string[];
}

/** The texts for a Step: `known` if they state its facts, otherwise new ones. */
export function leafTextsOf(intent: OpenedFacts, known: LeafTexts | null = null): LeafTexts {
  const { attempt, decision, owner } = intent;
  const stated = [
    attempt.connection,
    attempt.estimatedOutputTokens,
    attempt.gateway,
    attempt.model,
    attempt.number,
    attempt.outputCapFrom,
    attempt.price,
    attempt.reasons,
    attempt.vendor,
    intent.dataClass,
    decision.choice,
    decision.effect,
    decision.firstDecisionId,
    decision.policyVersion,
    decision.refusal,
    intent.endpoint,
    owner.keyId,
    owner.organizationId,
    intent.requestedModel,
    intent.source,
    intent.stream,
    owner.userId,
    decision.rules.length,
    ...decision.rules,
    ...attempt.serviceTiers,
  ];
  const isKnown =
    known?.stated.length === stated.length && stated.every((fact, at) => fact === known.stated[at]);
  return isKnown ? known : { stated, texts: openedTexts(intent) };
}

/** The number of values that differ in every Step. */
const openedGaps = 9;

function openedTexts(intent: OpenedFacts): readonly string[] {
  const { attempt, decision, owner } = intent;
  // A fraction marks each gap. Facts have only whole numbers, so if it is found elsewhere, a text contains it.
  for (let gap = 0.5; gap > 0; gap /= 2) {
    const leaf = JSON.stringify({
      at: gap,
      attempt: { ...attemptFacts(attempt), estimatedInputTokens: gap },
      chain: gap,
      dataClass: intent.dataClass,
      decision: { ...decisionFacts(decision), id: gap },
      endpoint: intent.endpoint,
      holds: gap,
      id: gap,
      instructions: gap,
      key: owner.keyId,
      kind: "step.opened",
      organization: owner.organizationId,
      requestedModel: intent.requestedModel,
      source: intent.source,
      step: gap,
      stepNumber: gap,
      stream: intent.stream,
      user: owner.userId,
      version,
    });
    const texts = `,${leaf.slice(1)}`.split(String(gap));
    if (texts.length === openedGaps + 1) return texts;
  }
  throw new RangeError("The facts of a Step contain every fraction.");
}

/** The leaf of an opened Step, with a gap for the store's assignment, which is the first member in order. */
export function openedLeaf(
  id: string,
  intent: OpenedFacts,
  { texts } = leafTextsOf(intent),
): LeafTemplate {
  const { owner, transcript, instructions, at } = intent;
  const values = [
    at,
    intent.attempt.estimatedInputTokens,
    transcript && JSON.stringify(chainFacts(transcript)),
    JSON.stringify(intent.decision.id),
    JSON.stringify(intent.holds.map(holdFacts)),
    JSON.stringify(id),
    instructions && JSON.stringify(hexOf(instructions.contentCommitment)),
    JSON.stringify(intent.stepId),
    intent.stepNumber,
  ];
  let after = "";
  for (let gap = 0; gap < openedGaps; gap++) after += `${texts[gap]}${values[gap]}`;
  after += texts[openedGaps];
  const { organizationId } = owner;
  return { id, organizationId, kind: "step.opened", at, before: '{"assignment":', after };
}

function chainFacts({ chain }: TranscriptIntent): object {
  return { head: hexOf(chain.subarray(-32)), length: chain.length / 32 };
}

export function attemptLeaf(id: string, intent: Omit<AttemptIntent, "leaf">): EvidenceLeaf {
  const { organizationId, at } = intent;
  const kind = "attempt.opened";
  const meta = JSON.stringify({
    at,
    attempt: attemptFacts(intent.attempt),
    decision: intent.decision && decisionFacts(intent.decision),
    ended: endFacts(intent.ended),
    holds: intent.holds?.map(holdFacts) ?? null,
    id,
    kind,
    organization: organizationId,
    step: intent.stepId,
    version,
  });
  return leafOf({ id, organizationId, kind, at }, meta);
}

export function settledLeaf(id: string, settlement: Omit<StepSettlement, "leaf">): EvidenceLeaf {
  const { organizationId, at, reply } = settlement;
  const kind = "step.settled";
  const meta = JSON.stringify({
    at,
    attempt: endFacts(settlement.attempt),
    finishReason: settlement.finishReason,
    id,
    kind,
    organization: organizationId,
    outcome: settlement.outcome,
    reason: settlement.reason,
    reasoning: settlement.reasoning ? hexOf(settlement.reasoning.contentCommitment) : undefined,
    reply: reply && {
      commitment: hexOf(reply.contentCommitment),
      head: reply.chain.length === 0 ? null : hexOf(reply.chain.subarray(-32)),
    },
    response: settlement.response?.id ?? null,
    step: settlement.stepId,
    version,
  });
  return leafOf({ id, organizationId, kind, at }, meta);
}

export function refusalLeaf(id: string, { decision, owner }: Omit<Refusal, "leaf">): EvidenceLeaf {
  const { organizationId } = owner;
  const { at, facts } = decision;
  const kind = "decision";
  const meta = JSON.stringify({
    at,
    dataClass: facts.dataClass,
    decision: decisionFacts(decision),
    id,
    key: owner.keyId,
    kind,
    model: `${facts.gateway}/${facts.vendor}/${facts.model}`,
    organization: organizationId,
    user: owner.userId,
    version,
  });
  return leafOf({ id, organizationId, kind, at }, meta);
}

/** States only the number of removed Steps: their own leaves stay. */
export function activityRemovedLeaf(id: string, sweep: Sweep, removed: RemovedSteps): EvidenceLeaf {
  const { organizationId, count } = removed;
  const { at, keep } = sweep;
  const head = { id, organizationId, kind: "activity.removed", at } as const;
  return createLeaf(head, { before: at - keep, count });
}

export function transcriptsErasedLeaf(
  id: string,
  sweep: Sweep,
  erased: ErasedTranscripts,
): EvidenceLeaf {
  const { organizationId, sessionIds } = erased;
  const { at, keep } = sweep;
  const head = { id, organizationId, kind: "transcripts.erased", at } as const;
  return createLeaf(head, { before: at - keep, sessions: sessionIds.toSorted() });
}

function decisionFacts(decision: PolicyDecision): object {
  return {
    choice: decision.choice && choiceFacts(decision.choice),
    effect: decision.effect,
    first: decision.firstDecisionId,
    id: decision.id,
    policy: decision.policyVersion,
    refusal: decision.refusal ? refusalFacts(decision.refusal) : undefined,
    rules: decision.rules,
  };
}

function choiceFacts({ by, passedOver, requested, virtual }: TargetChoice): object {
  const passed = passedOver.map(({ decisionId, model, reason }) => ({
    decision: decisionId,
    model,
    reason,
  }));
  return { by, passedOver: passed, requested, virtual };
}

function refusalFacts(refusal: DecisionRefusal): object {
  switch (refusal.by) {
    case "budget": {
      const { by, budgetId, left, needed, subject, unit } = refusal;
      return { budgetId, by, left, needed, subject, unit };
    }
    case "rate_limit": {
      const { by, left, needed, rateLimitId, subject, unit } = refusal;
      return { by, left, needed, rateLimitId, subject, unit };
    }
    case "price":
      return { by: refusal.by, param: refusal.param };
    case "connection":
      return { by: refusal.by };
  }
}

function attemptFacts(attempt: AttemptStart): object {
  return {
    connection: attempt.connection,
    estimatedInputTokens: attempt.estimatedInputTokens,
    estimatedOutputTokens: attempt.estimatedOutputTokens,
    gateway: attempt.gateway,
    model: attempt.model,
    number: attempt.number,
    outputCapFrom: attempt.outputCapFrom,
    price: attempt.price && priceFacts(attempt.price),
    reasons: attempt.reasons,
    serviceTiers: attempt.serviceTiers,
    vendor: attempt.vendor,
  };
}

function priceFacts({ source, tiers, version: release, ...standard }: Price): object {
  return {
    ...tierFacts(standard),
    source,
    tiers:
      tiers &&
      Object.fromEntries(
        Object.entries(tiers)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, tier]) => [name, tierFacts(tier)]),
      ),
    version: release,
  };
}

function tierFacts({ longPrompt, request, ...rates }: TierPrice): object {
  return {
    ...rateFacts(rates),
    longPrompt: longPrompt?.map(({ above, ...long }) => ({
      above,
      ...rateFacts(long),
      output: long.output,
      reasoning: long.reasoning,
    })),
    output: rates.output,
    reasoning: rates.reasoning,
    request,
  };
}

/** The rates that come before the thresholds in order. */
function rateFacts(rates: Rates): object {
  return {
    audioInput: rates.audioInput,
    audioOutput: rates.audioOutput,
    cacheWrite1h: rates.cacheWrite1h,
    cacheWrite5m: rates.cacheWrite5m,
    cachedInput: rates.cachedInput,
    imageInput: rates.imageInput,
    imageOutput: rates.imageOutput,
    input: rates.input,
  } satisfies Readonly<Record<Exclude<keyof Rates, "output" | "reasoning">, number | undefined>>;
}

function endFacts(end: AttemptSettlement): object {
  return {
    basis: end.usageBasis,
    bodySha256: end.bodySha256,
    costBasis: end.costBasis,
    costNanoUsd: end.costNanoUsd,
    error: end.error ? hexOf(end.error.contentCommitment) : undefined,
    host: end.host,
    number: end.number,
    outcome: end.outcome,
    priceSource: end.priceSource,
    reason: end.reason,
    reportedCostNanoUsd: end.reportedCostNanoUsd,
    serviceTier: end.serviceTier,
    usage: usageFacts(end.usage),
  };
}

function usageFacts(usage: Usage): object {
  const { audioInputTokens, audioOutputTokens, cacheWrite1hTokens, cacheWriteTokens } = usage;
  const { cachedTokens, completionTokens, imageInputTokens, imageOutputTokens } = usage;
  const { promptTokens, reasoningTokens, totalTokens } = usage;
  return {
    audioInputTokens,
    audioOutputTokens,
    cacheWrite1hTokens,
    cacheWriteTokens,
    cachedTokens,
    completionTokens,
    imageInputTokens,
    imageOutputTokens,
    promptTokens,
    reasoningTokens,
    totalTokens,
  } satisfies Readonly<Record<keyof Usage, number | undefined>>;
}

function holdFacts({ amount, budgetId, limit, mode, periodStart, subject, unit }: Hold): object {
  return { amount, budgetId, limit, mode, periodStart, subject, unit };
}
