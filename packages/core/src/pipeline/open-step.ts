import type {
  CommittedContent,
  OpenStepRefusal,
  OpenStepResult,
  StepIntent,
} from "../contracts/step-verbs.ts";
import type { Owner } from "../domain/caller.ts";
import { formatModelId } from "../domain/model-id.ts";
import { openedLeaf } from "../evidence/leaves.ts";
import { invalidApiKey } from "../identity/authenticate.ts";
import { addDropped } from "../sessions/provider-state.ts";
import { stepNumberOf } from "../sessions/step-number.ts";
import type { TranscriptChain } from "../sessions/transcript-chain.ts";
import { committed } from "./committed.ts";
import type { GatewayContext } from "./context.ts";
import { evidenceUnavailable, orUnavailable, unrecorded } from "./durable.ts";
import type { AnswerHead, PreparedCall } from "./governed-call.ts";
import { notOwned } from "./named-ids.ts";
import type { OpenStep } from "./open-steps.ts";
import { fitToBudget, type PlannedAttempt, planAttempt } from "./plan-attempt.ts";
import { budgetExceeded, priceUnknown, refuse, refusedByBudget, refusedByPrice } from "./refuse.ts";

/** A Step that is durable: the provider may be asked. */
export interface OpenedStep {
  readonly planned: PlannedAttempt;
  readonly chain: TranscriptChain;
  readonly owner: Owner;
  readonly answer: AnswerHead;
  readonly open: OpenStep;
}

interface StepToOpen {
  readonly planned: PlannedAttempt;
  readonly chain: TranscriptChain;
}

/** The key was changed since the caller was found by it: who calls, and what it may, must be found anew. */
export class KeyChanged extends Error {
  override readonly name = "KeyChanged";
}

/** The Step would go on with another Session than the one whose records the call was made from. */
export class SessionChanged extends Error {
  override readonly name = "SessionChanged";
}

const maxRounds = 16;

/**
 * Opens the Step. Where budgets changed since its holds were computed, or do not fit them, it computes holds that do, a
 * bounded number of times.
 */
export function openStep(
  context: GatewayContext,
  call: PreparedCall,
  step: StepToOpen,
  round = 0,
): Promise<OpenedStep> {
  const intent = intentOf(context, call, step);
  const open = context.openSteps.add(intent.owner.organizationId, intent.stepId);
  return context.store.openStep(intent).then(
    (result) => {
      if (result.opened) return openedStep(context, step, { intent, open, result });
      open.remove();
      return openAgain(context, call, { ...step, refusal: result.refusal, round });
    },
    (cause: unknown) => {
      open.remove();
      throw unrecorded(cause);
    },
  );
}

async function openAgain(
  context: GatewayContext,
  call: PreparedCall,
  refused: RefusedOpening,
): Promise<OpenedStep> {
  const planned = await recomputed(context, call, refused);
  if (planned === null) throw await openingError(context, call, refused);
  const round = refused.round + 1;
  if (round < maxRounds) return openStep(context, call, { ...refused, planned }, round);
  throw evidenceUnavailable(new Error("the budgets kept changing"));
}

/** An opening that the store refused, in which round. */
interface RefusedOpening extends StepToOpen {
  readonly refusal: OpenStepRefusal;
  readonly round: number;
}

function openedStep(
  context: GatewayContext,
  { planned, chain }: StepToOpen,
  {
    intent,
    open,
    result: { sessionId, turnId },
  }: {
    readonly intent: StepIntent;
    readonly open: OpenStep;
    readonly result: Extract<OpenStepResult, { opened: true }>;
  },
): OpenedStep {
  const { stepId, owner, at, decision } = intent;
  if (context.isObserved())
    context.notify({
      type: "step.opened",
      at,
      organizationId: owner.organizationId,
      stepId,
      sessionId,
      decisionId: decision.id,
      model: formatModelId(planned.attempt),
    });
  const { dataClass } = planned.routed;
  const answer = { stepId, sessionId, turnId, decisionId: decision.id, dataClass, openedAt: at };
  return { planned, chain, owner, answer, open };
}

function intentOf(
  context: GatewayContext,
  call: PreparedCall,
  { planned, chain }: StepToOpen,
): StepIntent {
  const { organizationId, userId, keyId, keyVersion, source } = call.caller;
  const { ids } = context;
  const { decision } = planned.routed;
  const keep = decision.obligations?.transcript ?? "full";
  const intent: Omit<StepIntent, "leaf"> = {
    stepId: ids.uuid(),
    process: { id: context.openSteps.processId, renewal: context.openSteps.renewal() },
    at: planned.attempt.startedAt,
    owner: { organizationId, userId, keyId },
    keyVersion,
    source,
    endpoint: call.endpoint,
    stream: call.stream,
    requestedModel: call.model,
    dataClass: planned.routed.dataClass,
    stepNumber: stepNumberOf(call.transcript),
    droppedFields: addDropped(call.droppedFields, call.state.dropped, planned.routed.dropped),
    metadata: keep === "digest" ? {} : (call.request.metadata ?? {}),
    transcript: {
      sessionId: call.sessionId,
      turnId: call.turnId,
      previousSessionId: call.previousSessionId,
      newSessionId: ids.uuid(),
      newTurnId: ids.uuid(),
      chain: chain.values,
      messages: chain.messages,
      lastUserMessage: chain.lastUserMessage,
      keep,
      contentSalt: ids.bytes(32),
      ...(call.state.continued && { expectedSession: call.state.continued.session }),
    },
    instructions: instructionsOf(context, call, keep),
    decision,
    attempt: planned.attempt,
    holds: planned.holds,
    budgetsVersion: planned.budgetsVersion,
  };
  return Object.assign(intent, { leaf: openedLeaf(ids.uuid(), intent) });
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
      return refuse(context, call.caller, {
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
      const { budgetId } = refusal.hold;
      const now = context.clock.now();
      context.notify({ type: "budget.exhausted", at: now, organizationId, budgetId });
      return refuse(context, call.caller, {
        decision: planned.routed.decision,
        refusal: refusedByBudget(refusal),
        error: budgetExceeded(refusal.hold, budgets, now),
      });
    }
  }
}

/** The call with other holds; null where there are none that it may be made with. */
async function recomputed(
  context: GatewayContext,
  call: PreparedCall,
  { planned, refusal, round }: RefusedOpening,
): Promise<PlannedAttempt | null> {
  switch (refusal.code) {
    case "budget_exceeded":
      return fitToBudget(context, call, { planned, refused: refusal, round });
    case "budgets_changed":
      await orUnavailable(context.budgets.reload());
      return planAttempt(context, call, { routed: planned.routed, number: 1 });
    default:
      return null;
  }
}
