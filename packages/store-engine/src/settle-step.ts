import {
  type Attempt,
  type AttemptEnd,
  type AttemptIntent,
  type AttemptSettlement,
  applyCorrection,
  type CorrectionIntent,
  correctionHours,
  GatewayError,
  type OpenAttemptResult,
  type Refusal,
  type ResponseDraft,
  type SettleStepResult,
  type Step,
  type StepReply,
  type StepSettlement,
} from "@tollgate/core/store";
import { chainHead, chainLength } from "./chain.ts";
import { settleClaim } from "./claims.ts";
import { CounterDraft, heldUntilSettled, insertHolds, refusedHold, settleHolds } from "./holds.ts";
import {
  type Charge,
  type Decision,
  type ErrorRecord,
  isOwnedBy,
  type Operation,
  type ResponseRecord,
  type SessionState,
  type StepRecord,
  unchanged,
  type View,
} from "./model.ts";
import { partRecord } from "./open-step.ts";
import { withCorrections } from "./whole-step.ts";

/**
 * Ends the running attempt and opens the next one. If the new holds don't fit, the running attempt keeps its holds. If
 * the attempt is already open, returns the first result again.
 * @throws GatewayError `step_not_found`, or `invalid_argument` for the end of an attempt that isn't running
 */
export function openAttempt(view: View, intent: AttemptIntent): Decision<OpenAttemptResult> {
  const { organizationId, stepId, ended, attempt, holds, decision } = intent;
  const record = requireStep(view, organizationId, stepId);
  const { step } = record;
  if (step.outcome !== null) return unchanged({ opened: false, hold: null });
  if (attempt.number <= runningAttempt(step).number) return unchanged({ opened: true });
  const attempts = [...endRunningAttempt(step, ended), { ...attempt, end: null }];
  const spent = addCharge(record.carried, ended.charge);

  const holdOperations: Operation[] = [];
  if (holds) {
    const counters = new CounterDraft(view);
    holdOperations.push(...settleHolds(view, counters, record, spent));
    const refused = counters.take(holds);
    if (refused) return unchanged({ opened: false, ...refused });
    const holder = { organizationId, stepId, attempt: attempt.number };
    holdOperations.push(...insertHolds(holder, holds), ...counters.operations());
  }
  const row = {
    ...record,
    step: { ...step, attempts },
    holds: holds ? heldUntilSettled(holds) : record.holds,
    carried: holds ? { usd: 0, tokens: 0 } : spent,
  };
  const change: Operation[] = [{ write: "update step", row }, ...holdOperations];
  const error = errorRecord(step, ended);
  if (error) change.push({ write: "insert error", row: error });
  if (decision) change.push({ write: "insert decision", row: { owner: step, decision } });
  change.push({ write: "insert leaf", row: intent.leaf });
  return {
    result: { opened: true },
    change,
    resultIfOverLimit: (counter, left) => ({
      opened: false,
      ...refusedHold(holds ?? [], counter, left),
    }),
  };
}

/** @throws GatewayError `step_not_found` */
function requireStep(view: Pick<View, "step">, organizationId: string, stepId: string): StepRecord {
  const record = view.step(organizationId, stepId);
  if (!record) throw new GatewayError("step_not_found", "Unknown Step.");
  return record;
}

/** The Step's attempts with the running one ended. */
function endRunningAttempt(step: Step, settlement: AttemptSettlement): readonly Attempt[] {
  const running = runningAttempt(step);
  if (running.number !== settlement.number)
    throw new GatewayError("invalid_argument", `Attempt ${settlement.number} is not running.`);
  return [...step.attempts.slice(0, -1), { ...running, end: attemptEndRecord(settlement) }];
}

function runningAttempt({ attempts }: Step): Attempt {
  const running = attempts.at(-1);
  if (!running) throw new TypeError("A Step must have an attempt.");
  return running;
}

/** An attempt's end as recorded with the Step. Its holds record the charge, and an error record has the provider's message. */
export function attemptEndRecord(settlement: AttemptSettlement): AttemptEnd {
  const { number, charge, error, ...end } = settlement;
  const commitment = error && Buffer.from(error.contentCommitment).toString("hex");
  return { ...end, error: commitment === null ? null : { message: null, commitment } };
}

/** The provider's error message of an attempt, if it has one. It is content, which only Sessions keep. */
function errorRecord(
  { organizationId, sessionId, id }: Pick<Step, "organizationId" | "sessionId" | "id">,
  { number, error }: AttemptSettlement,
): ErrorRecord | null {
  if (error === null || sessionId === null) return null;
  return { organizationId, sessionId, stepId: id, attempt: number, ...error };
}

function addCharge(a: Charge, b: Charge): Charge {
  return { usd: a.usd + b.usd, tokens: a.tokens + b.tokens };
}

/**
 * Settles a Step once. A later settlement changes nothing and returns the recorded outcome. Holds settle at the amount
 * spent, the reply joins the Session unless other messages took its place, the response is stored, and the claim on an
 * idempotency key keeps the answer or is freed.
 * @throws GatewayError `step_not_found`, or `invalid_argument` for an attempt that isn't running, an invalid chain, or a
 * response of another Step or owner
 */
export function settleStep(view: View, settlement: StepSettlement): Decision<SettleStepResult> {
  const { organizationId, stepId, attempt, outcome, reply, response } = settlement;
  const record = requireStep(view, organizationId, stepId);
  const { step } = record;
  if (step.outcome !== null) return unchanged({ settled: false, outcome: step.outcome });
  if (reply && !Number.isInteger(chainLength(reply.chain)))
    throw new GatewayError("invalid_argument", "A reply's chain needs 32 bytes for each message.");
  const attempts = endRunningAttempt(step, attempt);
  if (response) requireOwnResponse(step, response);
  const content =
    step.sessionId === null
      ? withoutContent(settlement)
      : contentOperations(view, { ...record, sessionId: step.sessionId }, settlement);

  const counters = new CounterDraft(view);
  const spent = addCharge(record.carried, attempt.charge);
  const holds = settleHolds(view, counters, record, spent);
  const change: Operation[] = [
    ...(response ? [responseOperation(view, step, response)] : []),
    ...counters.operations(),
    ...holds,
    ...content,
    { write: "settle step", row: { ...record, step: endedStep(step, attempts, settlement) } },
    ...settleClaim(step, settlement),
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

/** A Step without a Session has no place for content. */
function withoutContent({ reply, reasoning, response }: StepSettlement): readonly Operation[] {
  if (reply ?? reasoning ?? response)
    throw new GatewayError("invalid_argument", "A Step without a Session keeps no content.");
  return [];
}

/** Writes the Step's reply and reasoning, and the updated Session. */
function contentOperations(
  view: Pick<View, "session">,
  record: StepRecord & { readonly sessionId: string },
  settlement: StepSettlement,
): readonly Operation[] {
  const { organizationId, id: stepId } = record.step;
  const { sessionId } = record;
  const session = view.session(organizationId, sessionId);
  if (!session) throw new TypeError("A Step must have its Session.");
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

/** Whether a reply joins the Session: no other messages were added while it was in flight. */
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
    throw new GatewayError("invalid_argument", "The response belongs to another Step or owner.");
}

const nothingInherited = Buffer.from("[]");

/** Links a response to the one it continues, if that is still stored, so that no message is stored twice. */
function responseOperation(
  view: View,
  { idempotencyKeySha256 }: Step,
  draft: ResponseDraft,
): Operation {
  const { organizationId, previousResponseId } = draft;
  const previous =
    previousResponseId === null ? null : view.response(organizationId, previousResponseId);
  const builtOn = previous && isOwnedBy(draft, previous) ? previousResponseId : null;
  const row: ResponseRecord = {
    ...draft,
    builtOn,
    inherited: builtOn === null ? draft.inherited : nothingInherited,
    idempotencyKeySha256,
  };
  return { write: "insert response", row };
}

/**
 * Adds a correction to an attempt of a settled Step, and moves the counters the attempt was charged to. These are the
 * counters of the latest holds, up to this attempt, that an attempt of the same decision took.
 * @throws GatewayError `step_not_found`, or `invalid_argument` as `applyCorrection` does
 */
export function correct(view: View, intent: CorrectionIntent): Decision<boolean> {
  const { organizationId, stepId, leaf, correction: draft } = intent;
  const record = requireStep(view, organizationId, stepId);
  const known = view.corrections(organizationId, stepId);
  if (known.some(({ correction }) => correction.id === draft.id)) return unchanged(false);
  const step = withCorrections(record.step, known);
  const applied = applyCorrection(step, draft);
  const attempt = step.attempts.find(({ number }) => number === draft.attempt);
  if (applied === null || attempt === undefined) return unchanged(false);
  const { correction, delta, heldSince } = applied;

  const holds = view.holds(record);
  const taken = holds
    .map((hold) => hold.attempt)
    .filter((attempt) => attempt >= heldSince && attempt <= draft.attempt);
  const heldBy = taken.length === 0 ? null : Math.max(...taken);
  const counters = new CounterDraft(view);
  for (const hold of holds)
    if (hold.attempt === heldBy && (hold.unit === "usd" || hold.unit === "tokens"))
      counters.correct(hold, delta[hold.unit]);
  const row = { organizationId, stepId, attempt: draft.attempt, correction, delta, heldBy };
  const change: Operation[] = [
    { write: "insert correction", row },
    ...correctionHours(step, attempt, correction).map(
      (hour): Operation => ({ write: "insert usage", row: hour }),
    ),
    ...counters.operations(),
    { write: "insert leaf", row: leaf },
  ];
  return { result: true, change };
}

/** Records the decision of a refused request and its leaf, once. */
export function recordRefusal(view: View, { owner, decision, leaf }: Refusal): Decision<void> {
  if (view.hasDecision(owner.organizationId, decision.id)) return unchanged(undefined);
  return {
    result: undefined,
    change: [
      { write: "claim decision", row: { owner, decision } },
      { write: "insert leaf", row: leaf },
    ],
  };
}
