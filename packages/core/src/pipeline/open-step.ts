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
import { type Candidate, fitted, planAttempt } from "./candidate.ts";
import { committed } from "./committed.ts";
import { durable, evidenceUnavailable, unrecorded } from "./durable.ts";
import type { AnswerHead, PreparedCall } from "./governed-call.ts";
import type { Line } from "./line.ts";
import { notOwned } from "./named-ids.ts";
import type { OpenStep } from "./open-steps.ts";
import { budgetExceeded, priceUnknown, refuse, refusedByBudget, refusedByPrice } from "./refuse.ts";

/** A Step that is durable: the provider may be asked. */
export interface OpenedStep {
  readonly candidate: Candidate;
  readonly chain: TranscriptChain;
  readonly owner: Owner;
  readonly answer: AnswerHead;
  readonly open: OpenStep;
}

interface Opening {
  readonly candidate: Candidate;
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

const mostRounds = 16;

/**
 * Opens the Step. Where budgets changed since its holds were computed, or do not fit them, it computes holds that do, a
 * bounded number of times.
 */
export function openStep(
  line: Line,
  call: PreparedCall,
  opening: Opening,
  round = 0,
): Promise<OpenedStep> {
  const intent = intentOf(line, call, opening);
  const open = line.openSteps.add(intent.owner.organizationId, intent.stepId);
  return line.store.openStep(intent).then(
    (result) => {
      if (result.opened) return openedStep(line, opening, { intent, open, result });
      open.remove();
      return openAgain(line, call, { ...opening, refusal: result.refusal, round });
    },
    (cause: unknown) => {
      open.remove();
      throw unrecorded(cause);
    },
  );
}

async function openAgain(line: Line, call: PreparedCall, refused: Refused): Promise<OpenedStep> {
  const candidate = await recomputed(line, call, refused);
  if (candidate === null) throw await refusalOf(line, call, refused);
  const round = refused.round + 1;
  if (round < mostRounds) return openStep(line, call, { ...refused, candidate }, round);
  throw evidenceUnavailable(new Error("the budgets kept changing"));
}

/** An opening that the store refused, in which round. */
interface Refused extends Opening {
  readonly refusal: OpenStepRefusal;
  readonly round: number;
}

function openedStep(
  line: Line,
  { candidate, chain }: Opening,
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
  if (line.isObserved())
    line.notify({
      type: "step.opened",
      at,
      organizationId: owner.organizationId,
      stepId,
      sessionId,
      decisionId: decision.id,
      model: formatModelId(candidate.attempt),
    });
  const { dataClass } = candidate.decided;
  const answer = { stepId, sessionId, turnId, decisionId: decision.id, dataClass, openedAt: at };
  return { candidate, chain, owner, answer, open };
}

function intentOf(line: Line, call: PreparedCall, { candidate, chain }: Opening): StepIntent {
  const { organizationId, userId, keyId, keyVersion, source } = call.caller;
  const { ids } = line;
  const { decision } = candidate.decided;
  const keep = decision.obligations?.transcript ?? "full";
  const intent: Omit<StepIntent, "leaf"> = {
    stepId: ids.uuid(),
    process: { id: line.openSteps.processId, renewal: line.openSteps.renewal() },
    at: candidate.attempt.startedAt,
    owner: { organizationId, userId, keyId },
    keyVersion,
    source,
    endpoint: call.endpoint,
    stream: call.stream,
    requestedModel: call.model,
    dataClass: candidate.decided.dataClass,
    stepNumber: stepNumberOf(call.transcript),
    droppedFields: addDropped(call.droppedFields, call.state.dropped, candidate.decided.dropped),
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
    instructions: instructionsOf(line, call, keep),
    decision,
    attempt: candidate.attempt,
    holds: candidate.holds,
    budgetsVersion: candidate.budgetsVersion,
  };
  return Object.assign(intent, { leaf: openedLeaf(ids.uuid(), intent) });
}

function instructionsOf(
  line: Line,
  { instructions }: PreparedCall,
  keep: "full" | "digest",
): CommittedContent | null {
  if (instructions === null) return null;
  return committed(line, Buffer.from(instructions), keep === "full");
}

async function refusalOf(
  line: Line,
  call: PreparedCall,
  { candidate, refusal }: Refused,
): Promise<Error> {
  switch (refusal.code) {
    case "invalid_api_key":
      return invalidApiKey();
    case "key_changed":
      return new KeyChanged();
    case "session_changed":
      return new SessionChanged();
    case "budgets_changed":
      return refuse(line, call.caller, {
        decision: candidate.decided.decision,
        refusal: refusedByPrice(candidate.decided),
        error: priceUnknown(candidate.decided),
      });
    case "session_not_found":
    case "turn_not_found":
      return notOwned(refusal.code);
    case "budget_exceeded": {
      const sheet = line.budgets.current();
      const { budgets } = sheet instanceof Promise ? await durable(sheet) : sheet;
      const { organizationId } = call.caller;
      const { budgetId } = refusal.hold;
      const now = line.clock.now();
      line.notify({ type: "budget.exhausted", at: now, organizationId, budgetId });
      return refuse(line, call.caller, {
        decision: candidate.decided.decision,
        refusal: refusedByBudget(refusal),
        error: budgetExceeded(refusal.hold, budgets, now),
      });
    }
  }
}

/** The call with other holds; null where there are none that it may be made with. */
async function recomputed(
  line: Line,
  call: PreparedCall,
  { candidate, refusal, round }: Refused,
): Promise<Candidate | null> {
  switch (refusal.code) {
    case "budget_exceeded":
      return fitted(line, call, { candidate, refused: refusal, round });
    case "budgets_changed":
      await durable(line.budgets.reload());
      return planAttempt(line, call, { decided: candidate.decided, number: 1 });
    default:
      return null;
  }
}
