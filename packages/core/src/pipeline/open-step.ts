import { periodEnd } from "../budgets/period.ts";
import {
  type RateState,
  type RateTemplate,
  rateHeaders,
  rateLimitExceeded,
  rateStateAt,
  refusedByRate,
} from "../budgets/rate-limits.ts";
import type { GatewayEvent } from "../contracts/observer.ts";
import type {
  CommittedContent,
  EarlierClaim,
  OpenStepRefusal,
  OpenStepResult,
  RefusedHold,
  StepIntent,
  TranscriptIntent,
} from "../contracts/step-verbs.ts";
import { type Budget, type Hold, isBudgetUnit } from "../domain/budget.ts";
import type { Caller, Owner } from "../domain/caller.ts";
import { commitContent } from "../domain/leaf-template.ts";
import { formatModelId } from "../domain/model-id.ts";
import type { DecisionRefusal, PolicyDecision } from "../domain/policy-decision.ts";
import type { Price } from "../domain/price.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import { GatewayError, tooOften } from "../errors/gateway-error.ts";
import { refusalLeaf } from "../evidence/leaves.ts";
import { claimedError } from "../idempotency/claim.ts";
import { invalidApiKey } from "../identity/authenticate.ts";
import { addDropped } from "../sessions/provider-state.ts";
import type { ChainEnd, TranscriptChain } from "../sessions/transcript-chain.ts";
import { headOf, stepNumberOf } from "../sessions/transcript-chain.ts";
import type { GatewayContext } from "./context.ts";
import { notOwned } from "./conversation.ts";
import { withDecision } from "./decision-headers.ts";
import type { AnswerHead, PreparedCall, ReplayedAnswer } from "./governed-call.ts";
import { meet } from "./obligations.ts";
import type { OpenStep } from "./open-steps.ts";
import { fitToBudget, type PlannedAttempt, planAgain, planAttempt } from "./plan-attempt.ts";
import { evidenceUnavailable, orUnavailable, unrecorded } from "./store-calls.ts";

/** A durable Step: the provider may be asked. */
export interface OpenedStep {
  readonly planned: PlannedAttempt;
  /** Null for a call without a transcript. */
  readonly chain: ChainEnd | null;
  readonly owner: Owner;
  readonly answer: AnswerHead;
  readonly open: OpenStep;
}

interface StepToOpen {
  readonly planned: PlannedAttempt;
  readonly chain: TranscriptChain | null;
  /** The Step that it probably repeats; null for none. */
  readonly retryOf: string | null;
}

/** The key changed since the caller was authenticated. The request must start over with the caller as it is now. */
export class KeyChanged extends Error {
  override readonly name = "KeyChanged";
}

/** The Step would continue a different Session than the one that was read for it. */
export class SessionChanged extends Error {
  override readonly name = "SessionChanged";
}

const maxRounds = 16;

/**
 * Opens the Step, or finds the kept answer of the request that this one repeats. If budgets changed since its holds were
 * computed, or have too little left, tries again with new holds, a bounded number of times.
 */
export function openStep(
  context: GatewayContext,
  call: PreparedCall,
  step: StepToOpen,
  round = 0,
): Promise<OpenedStep | ReplayedAnswer> {
  const intent = intentOf(context, call, step);
  const open = context.openSteps.add(intent.owner.organizationId, intent.stepId);
  const startedAt = context.isObserved() ? context.clock.monotonic() : 0;
  return context.store.openStep(intent).then(
    (result) => {
      if (result.opened) {
        if (context.isObserved()) notifyOpened(context, call, { intent, result, startedAt });
        return openedStep(step, { intent, open, result });
      }
      open.remove();
      if (result.refusal.code === "claimed") return repeat(context, call, result.refusal);
      return openAgain(context, call, { ...step, refusal: result.refusal, round });
    },
    (cause: unknown) => {
      open.remove();
      throw unrecorded(cause);
    },
  );
}

const repeatsLess = "This API key repeats completed requests too often. Send fewer repeats.";

/**
 * Answers a request whose idempotency key is claimed: with the kept answer, or with an error that carries the decision of the
 * claim's Step. Its own decision has no record.
 */
function repeat(
  context: GatewayContext,
  { caller }: PreparedCall,
  claim: EarlierClaim,
): ReplayedAnswer {
  const { stepId, decisionId, dataClass, answer } = claim;
  const wait =
    answer && context.replays.take(JSON.stringify([caller.organizationId, caller.keyId]));
  if (answer !== null && wait === null) return { stepId, decisionId, dataClass, replayed: answer };
  const error =
    wait === null ? claimedError(claim, context.clock.now()) : tooOften(repeatsLess, wait);
  throw withDecision(error, context.headerNames, { dataClass, decisionId, stepId });
}

async function openAgain(
  context: GatewayContext,
  call: PreparedCall,
  refused: RefusedOpening,
): Promise<OpenedStep | ReplayedAnswer> {
  const planned = await recomputed(context, call, refused);
  if (planned === null) throw await openingError(context, call, refused);
  const round = refused.round + 1;
  if (round < maxRounds) return openStep(context, call, { ...refused, planned }, round);
  throw evidenceUnavailable(
    new Error(`the budgets changed during ${maxRounds} attempts to open the Step`),
  );
}

/** A Step that the store refused to open. */
interface RefusedOpening extends StepToOpen {
  readonly refusal: Exclude<OpenStepRefusal, { readonly code: "claimed" }>;
  readonly round: number;
}

function notifyOpened(
  context: GatewayContext,
  { requestId }: PreparedCall,
  {
    intent: { stepId, owner, at, decision, endpoint, stream, dataClass, attempt, holds },
    result: { sessionId },
    startedAt,
  }: {
    readonly intent: StepIntent;
    readonly result: Extract<OpenStepResult, { opened: true }>;
    readonly startedAt: number;
  },
): void {
  context.notify({
    type: "step.opened",
    at,
    requestId,
    organizationId: owner.organizationId,
    keyId: owner.keyId,
    stepId,
    sessionId,
    decisionId: decision.id,
    endpoint,
    stream,
    model: formatModelId(attempt),
    dataClass,
    holds: holds.length,
    writeMs: Math.round(context.clock.monotonic() - startedAt),
  });
}

function openedStep(
  { planned, chain }: StepToOpen,
  {
    intent,
    open,
    result: { sessionId, turnId, paces },
  }: {
    readonly intent: StepIntent;
    readonly open: OpenStep;
    readonly result: Extract<OpenStepResult, { opened: true }>;
  },
): OpenedStep {
  const { stepId, owner, at, decision } = intent;
  const { dataClass } = planned.routed;
  const rateLimits = paces === undefined ? null : rateHeaders(statesOf(planned, paces, at));
  const head = { stepId, sessionId, turnId, decisionId: decision.id, dataClass, openedAt: at };
  const answer = { ...head, rateLimits };
  // Without the texts, which are as large as the request.
  const end = chain && { values: headOf(chain), last: chain.last };
  return { planned, chain: end, owner, answer, open };
}

/** The rate limits in requests and tokens as this Step left them. */
function statesOf(
  { rates, holds }: PlannedAttempt,
  paces: readonly number[],
  at: number,
): readonly RateState[] {
  const paced = rates.filter((_, place) => holds[place]?.floor !== undefined);
  return paced.flatMap(({ rateLimit }, place) => {
    const usedUntil = paces[place];
    return usedUntil === undefined ? [] : rateStateAt(rateLimit, usedUntil, at);
  });
}

function intentOf(
  context: GatewayContext,
  call: PreparedCall,
  { planned, chain, retryOf }: StepToOpen,
): StepIntent {
  const { organizationId, userId, keyId, keyVersion, source } = call.caller;
  const { ids } = context;
  const { decision, cached } = planned.routed;
  const keep = meet.transcript(decision);
  const intent: Omit<StepIntent, "leaf"> = {
    // So the header of an answer names both.
    stepId: decision.id,
    process: { id: context.openSteps.processId, renewal: context.openSteps.renewal() },
    at: planned.attempt.startedAt,
    owner: { organizationId, userId, keyId },
    keyVersion,
    source,
    endpoint: call.endpoint,
    stream: call.stream,
    requestedModel: call.model,
    dataClass: planned.routed.dataClass,
    stepNumber: chain && stepNumberOf(call.transcript),
    droppedFields: addDropped(call.droppedFields, call.state.dropped, planned.routed.dropped),
    metadata: keep === "digest" ? {} : (call.request.metadata ?? {}),
    transcript: chain && transcriptOf(context, call, { chain, keep }),
    instructions: instructionsOf(context, call, keep),
    claim: call.claim,
    retryOf,
    decision,
    attempt: planned.attempt,
    holds: planned.holds,
    budgetsVersion: planned.budgetsVersion,
  };
  return Object.assign(intent, { leaf: cached.leafFor(ids.uuid(), intent) });
}

function transcriptOf(
  { ids }: GatewayContext,
  call: PreparedCall,
  { chain, keep }: { readonly chain: TranscriptChain; readonly keep: "full" | "digest" },
): TranscriptIntent {
  return {
    sessionId: call.sessionId,
    turnId: call.turnId,
    previousSessionId: call.previousSessionId,
    newSessionId: call.selection?.newSessionId ?? ids.uuid(),
    chain: chain.values,
    messages: chain.messages,
    lastUserMessage: chain.lastUserMessage,
    keep,
    contentSalt: ids.bytes(32),
    ...(call.state.continued && { expectedSession: call.state.continued.session }),
  };
}

function instructionsOf(
  context: GatewayContext,
  { instructions }: PreparedCall,
  keep: "full" | "digest",
): CommittedContent | null {
  if (instructions === null) return null;
  return committed(context, Buffer.from(instructions), keep === "full");
}

async function openingError(
  context: GatewayContext,
  call: PreparedCall,
  { planned, refusal }: RefusedOpening,
): Promise<Error> {
  switch (refusal.code) {
    case "invalid_api_key":
      return invalidApiKey();
    case "key_changed":
      return new KeyChanged();
    case "session_changed":
      return new SessionChanged();
    case "budgets_changed":
      return new CallRefused({
        decision: planned.routed.decision,
        refusal: refusedByPrice(planned.routed),
        error: priceUnknown(planned.routed),
      });
    case "session_not_found":
    case "turn_not_found":
      return notOwned(refusal.code);
    case "budget_exceeded": {
      const snapshot = context.budgets.current();
      const { budgets } = snapshot instanceof Promise ? await orUnavailable(snapshot) : snapshot;
      const { organizationId } = call.caller;
      const now = context.clock.now();
      if (!isBudgetUnit(refusal.hold.unit))
        return new CallRefused({
          decision: planned.routed.decision,
          refusal: refusedByHold(planned, refusal),
          error: rateLimitExceeded(rateLimitOf(planned.rates, refusal.hold), refusal, now),
        });
      context.notify(exhausted(refusal.hold, { at: now, organizationId }));
      return new CallRefused({
        decision: planned.routed.decision,
        refusal: refusedByHold(planned, refusal),
        error: budgetExceeded(refusal.hold, budgets, now),
      });
    }
  }
}

/** The call with new holds; null if no holds would be accepted. */
async function recomputed(
  context: GatewayContext,
  call: PreparedCall,
  { planned, refusal, round }: RefusedOpening,
): Promise<PlannedAttempt | null> {
  switch (refusal.code) {
    case "budget_exceeded": {
      const refused = { planned, refused: refusal, round };
      return isBudgetUnit(refusal.hold.unit)
        ? fitToBudget(context, call, refused)
        : planAgain(context, call, refused);
    }
    case "budgets_changed":
      await orUnavailable(context.budgets.reload());
      return planAttempt(context, { ...call, claim: null }, { routed: planned.routed, number: 1 });
    default:
      return null;
  }
}

/** A decision without a Step. `refusal` is null if the policy denied it. */
export interface Refused {
  readonly decision: PolicyDecision;
  readonly refusal: DecisionRefusal | null;
}

/** Records decisions without a Step concurrently: a store can write them together. Denials are evidence too. */
export async function recordDecisions(
  { store, ids }: GatewayContext,
  { organizationId, userId, keyId }: Caller,
  refusals: readonly Refused[],
): Promise<void> {
  const owner = { organizationId, userId, keyId };
  const record = ({ decision, refusal }: Refused): Promise<void> => {
    const refused = { owner, decision: { ...decision, refusal } };
    return store.recordRefusal({ ...refused, leaf: refusalLeaf(ids.uuid(), refused) });
  };
  await orUnavailable(Promise.all(refusals.map(record)));
}

/** A decided call that was refused. Nobody may see it before it is recorded. */
export class CallRefused extends Error {
  override readonly name = "CallRefused";
  readonly refused: Refused & { readonly error: GatewayError };

  constructor(refused: Refused & { readonly error: GatewayError }) {
    super(refused.error.message);
    this.refused = refused;
  }
}

export function policyDenied(decision: PolicyDecision): GatewayError {
  const rules = decision.rules.length === 0 ? "" : ` by rule ${decision.rules.join(", ")}`;
  const reason = decision.reason === undefined ? "." : `: ${decision.reason}`;
  return new GatewayError("policy_denied", `The policy denied this request${rules}${reason}`);
}

/** How a decision records a hold that does not fit. */
export function refusedByHold(
  { rates }: Pick<PlannedAttempt, "rates">,
  refused: RefusedHold,
): DecisionRefusal {
  const { hold, left } = refused;
  const { budgetId, subject, unit, amount } = hold;
  if (!isBudgetUnit(unit)) return refusedByRate(rateLimitOf(rates, hold), refused);
  return { by: "budget", budgetId, subject, unit, needed: amount, left };
}

/** The rate limit that a hold is on. */
function rateLimitOf(rates: readonly RateTemplate[], { budgetId }: Hold): RateLimit {
  const template = rates.find(({ rateLimit }) => rateLimit.id === budgetId);
  if (!template) throw new TypeError("a hold names an unknown rate limit");
  return template.rateLimit;
}

/** How a decision records a missing price: of the model, or only of its service tier. */
export function refusedByPrice({ price }: { readonly price: Price | null }) {
  return { by: "price", param: price === null ? "model" : "service_tier" } as const;
}

/** The error for a missing price. */
export function priceUnknown(priced: { readonly price: Price | null }): GatewayError {
  const { param } = refusedByPrice(priced);
  const what = param === "model" ? "this model has no price" : "this service tier has no price";
  return new GatewayError(
    "price_unknown",
    `A budget in US dollars applies and ${what}, so Tollgate can't reserve its cost.`,
    { param },
  );
}

/** The event of a budget without room for a hold. */
export function exhausted(
  hold: Hold,
  when: { readonly at: number; readonly organizationId: string },
): GatewayEvent {
  const { budgetId, subject, unit, limit, periodStart } = hold;
  return { type: "budget.exhausted", ...when, budgetId, subject, unit, limit, periodStart };
}

function budgetExceeded(hold: Hold, budgets: readonly Budget[], now: number): GatewayError {
  const period = budgets.find((budget) => budget.id === hold.budgetId)?.period ?? "total";
  const end = periodEnd(period, hold.periodStart);
  const until = end === null ? "It never resets." : `It resets at ${new Date(end).toISOString()}.`;
  const message = `The budget ${hold.budgetId} doesn't have enough left for this request. ${until}`;
  return new GatewayError("budget_exceeded", message, {
    headers:
      end === null ? {} : { "retry-after": String(Math.max(1, Math.ceil((end - now) / 1_000))) },
  });
}

/** Content with its commitment, without the bytes if the policy keeps only digests. */
export function committed(
  { ids }: GatewayContext,
  content: Uint8Array,
  isKept: boolean,
): CommittedContent {
  const contentSalt = ids.bytes(32);
  return {
    content: isKept ? content : null,
    contentSalt,
    contentCommitment: commitContent(contentSalt, content),
  };
}
