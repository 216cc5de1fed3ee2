import {
  type ApiKey,
  type CommittedContent,
  type ConversationIntent,
  commitContent,
  fillLeaf,
  GatewayError,
  isExpectedSession,
  keyIsLive,
  type OpenStepRefusal,
  type OpenStepResult,
  type Step,
  type StepAssignment,
  type StepIntent,
} from "@tollgate/core/store";
import { chainHead, chainLength, chainSlice } from "./chain.ts";
import { claimKey } from "./claims.ts";
import { CounterDraft, currentPaces, heldUntilSettled, insertHolds, refusedHold } from "./holds.ts";
import {
  type Decision,
  type Operation,
  type PartRecord,
  type SessionState,
  type StepRecord,
  unchanged,
  type View,
} from "./model.ts";
import { type Assignment, assignSession, foundSessionOf } from "./sessions.ts";

/**
 * Opens a Step. Checks the key, the claim on an idempotency key, the Session, the version of the budgets and the holds in this
 * order; the first failure determines the refusal. If the Step is already open, returns the first result again, with the
 * paces as they are now.
 * A Step without a transcript has no Session and no Turn.
 * @throws GatewayError `invalid_argument` for a chain that does not fit its messages
 */
export function openStep(view: View, intent: StepIntent): Decision<OpenStepResult> {
  const { owner, stepId } = intent;
  const known = view.openedBefore(owner.organizationId, stepId);
  if (known) return unchanged(openingOf(known, currentPaces(view, intent.holds)));
  const conversation = isConversation(intent) ? intent : null;
  if (conversation !== null) requireWholeChain(conversation);
  const key = view.key(owner.organizationId, owner.keyId);
  if (key?.userId !== owner.userId || !keyIsLive(key, intent.at))
    return refuse({ code: "invalid_api_key" });
  if (key.version !== intent.keyVersion) return refuse({ code: "key_changed" });
  const claim = claimKey(view, intent);
  if ("found" in claim) return refuse({ code: "claimed", ...claim });
  const place = conversation === null ? nowhere : placeIn(view, conversation);
  if ("code" in place) return refuse(place);
  if (intent.budgetsVersion !== view.budgetsVersion()) return refuse({ code: "budgets_changed" });
  const counters = new CounterDraft(view);
  const refused = counters.take(intent.holds);
  if (refused) return refuse({ code: "budget_exceeded", ...refused });

  const record = stepRecord(intent, key, place);
  const { organizationId } = owner;
  const holder = { organizationId, stepId, attempt: intent.attempt.number };
  const change = operationsFor(intent, place, record);
  change.push(...claim, ...counters.operations(), ...insertHolds(holder, intent.holds));
  const withPaces = (paces: readonly number[]): OpenStepResult => openingOf(record, paces);
  return {
    result: withPaces(counters.paces()),
    change,
    resultWithPaces: withPaces,
    resultIfOverLimit: (counter, left) => {
      const unfit = refusedHold(intent.holds, counter, left);
      return { opened: false, refusal: { code: "budget_exceeded", ...unfit } };
    },
  };
}

type StepOpened = Extract<OpenStepResult, { opened: true }>;

function refuse(refusal: OpenStepRefusal): Decision<OpenStepResult> {
  return unchanged({ opened: false, refusal });
}

function openingOf(
  { step, branchedFromSessionId }: StepRecord,
  paces: readonly number[],
): StepOpened {
  const { sessionId, turnId } = step;
  const opened = { opened: true, sessionId, turnId, branchedFromSessionId } as const;
  return paces.length === 0 ? opened : { ...opened, paces };
}

function isConversation(intent: StepIntent): intent is ConversationIntent {
  return intent.transcript !== null;
}

function requireWholeChain({ transcript: { chain, messages } }: ConversationIntent): void {
  if (chainLength(chain) !== messages.length)
    throw new GatewayError("invalid_argument", "The chain needs 32 bytes for each message.");
}

/** The Session and Turn that a Step belongs to. */
interface Placement {
  readonly sessionId: string;
  readonly turnId: string;
  readonly openedSession: boolean;
  readonly branchedFromSessionId: string | null;
}

/** Where a Step belongs. The rest is computed only if the Step opens. */
interface Place extends Placement {
  /** Adds the rows of its Session, its Turn and its content. Returns what its leaf attests. */
  readonly write: (change: Operation[]) => StepAssignment;
}

/** The place of a Step without a transcript. */
interface Nowhere {
  readonly sessionId: null;
  readonly turnId: null;
  readonly openedSession: false;
  readonly branchedFromSessionId: null;
  readonly write: () => null;
}

const nowhere: Nowhere = {
  sessionId: null,
  turnId: null,
  openedSession: false,
  branchedFromSessionId: null,
  write: () => null,
};

function placeIn(view: View, intent: ConversationIntent): Place | OpenStepRefusal {
  const assignment = assignSession(view, intent);
  if ("code" in assignment) return assignment;
  const { expectedSession } = intent.transcript;
  if (!isExpectedSession(expectedSession, foundSessionOf(assignment)))
    return { code: "session_changed" };
  const placement = placementOf(intent, assignment);
  return {
    ...placement,
    write: (change) => writeConversation(intent, assignment, placement, change),
  };
}

/** Whether a request starts a Turn: it starts a Session, or adds a user message to one. */
function isNewTurn({ transcript }: ConversationIntent, assignment: Assignment): boolean {
  return assignment.kind !== "continue" || transcript.lastUserMessage > assignment.session.length;
}

function placementOf(intent: ConversationIntent, assignment: Assignment): Placement {
  const { newSessionId, turnId } = intent.transcript;
  const startsTurn = isNewTurn(intent, assignment);
  if (assignment.kind !== "continue") {
    const branchedFromSessionId = assignment.kind === "branch" ? assignment.origin.id : null;
    const created = { sessionId: newSessionId, turnId: intent.stepId };
    return { ...created, openedSession: true, branchedFromSessionId };
  }
  const { session } = assignment;
  return {
    sessionId: session.id,
    turnId: startsTurn ? intent.stepId : (turnId ?? session.turnId),
    openedSession: false,
    branchedFromSessionId: null,
  };
}

/** Writes every row of a new Step except its holds. */
function operationsFor(
  intent: StepIntent,
  place: Place | Nowhere,
  record: StepRecord,
): Operation[] {
  const { owner, decision, leaf } = intent;
  const change: Operation[] = [
    { write: "insert step", row: record, renewal: intent.process.renewal },
  ];
  const assignment = place.write(change);
  change.push(
    { write: "insert decision", row: { owner, decision } },
    { write: "insert leaf", row: fillLeaf(leaf, assignment) },
  );
  return change;
}

/** Adds the rows of a Step's Session, its Turn and its content. */
function writeConversation(
  intent: ConversationIntent,
  assignment: Assignment,
  { sessionId, turnId, branchedFromSessionId }: Placement,
  change: Operation[],
): StepAssignment {
  const { owner } = intent;
  const commonLength = foundSessionOf(assignment)?.commonLength ?? 0;
  const request = newMessagesPart(intent, sessionId, commonLength);
  change.push(sessionOperation(intent, assignment, turnId));
  if (isNewTurn(intent, assignment))
    change.push({ write: "insert turn", row: { ...owner, id: turnId, sessionId } });
  if (request) change.push({ write: "insert part", row: request });
  const instructions = instructionsPart(intent, sessionId);
  if (instructions) change.push({ write: "insert part", row: instructions });
  const contentCommitment = request?.contentCommitment ?? null;
  return { sessionId, turnId, branchedFromSessionId, commonLength, contentCommitment };
}

/** Writes the Session with the request added. */
function sessionOperation(
  intent: ConversationIntent,
  assignment: Assignment,
  turnId: string,
): Operation {
  const { owner, transcript, at } = intent;
  const length = transcript.messages.length;
  const head = chainHead(transcript.chain);
  const before = sessionOf(assignment);
  const dataClasses = addDataClass(before?.dataClasses ?? [], intent.dataClass);
  if (assignment.kind === "continue") {
    const { session } = assignment;
    // The request may name an earlier Turn of the Session, which does not become the latest.
    const latest = isNewTurn(intent, assignment) ? turnId : session.turnId;
    const inFlight = session.inFlight && session.length === length;
    const changed = { head, length, dataClasses, inFlight, turnId: latest, updatedAt: at };
    return { write: "update session", row: { ...session, ...changed } };
  }
  const row: SessionState = {
    ...owner,
    id: transcript.newSessionId,
    source: intent.source,
    head,
    length,
    dataClasses,
    createdAt: at,
    updatedAt: at,
    branchedFromSessionId: before?.id ?? null,
    commonLength: foundSessionOf(assignment)?.commonLength ?? 0,
    updated: 0,
    inFlight: true,
    turnId,
    rootSessionId: before && (before.rootSessionId ?? before.id),
    historyFromSessionId: assignment.kind === "branch" ? assignment.historyFromSessionId : null,
  };
  return { write: "insert session", row };
}

function sessionOf(assignment: Assignment): SessionState | null {
  if (assignment.kind === "create") return null;
  return assignment.kind === "continue" ? assignment.session : assignment.origin;
}

function addDataClass(classes: readonly string[], dataClass: string): readonly string[] {
  return classes.includes(dataClass) ? classes : [...classes, dataClass];
}

/** The messages the Session doesn't have yet. Null if there are none. */
function newMessagesPart(
  { owner, stepId, transcript }: ConversationIntent,
  sessionId: string,
  commonLength: number,
): PartRecord | null {
  const { messages, chain, keep, contentSalt } = transcript;
  if (messages.length === commonLength) return null;
  const content = Buffer.from(`[${messages.slice(commonLength).join(",")}]`);
  return {
    organizationId: owner.organizationId,
    sessionId,
    stepId,
    kind: "request",
    position: commonLength,
    count: messages.length - commonLength,
    chain: chainSlice(chain, commonLength),
    content: keep === "full" ? content : null,
    contentSalt,
    contentCommitment: commitContent(contentSalt, content),
  };
}

function instructionsPart(
  { owner, stepId, instructions }: StepIntent,
  sessionId: string,
): PartRecord | null {
  const { organizationId } = owner;
  const step = { organizationId, sessionId, stepId, kind: "instructions" } as const;
  return instructions && partRecord(step, instructions);
}

function stepRecord(
  intent: StepIntent,
  key: Pick<ApiKey, "label">,
  { sessionId, turnId, openedSession, branchedFromSessionId }: Placement | Nowhere,
): StepRecord {
  return {
    step: stepOf(intent, { sessionId, turnId, keyLabel: key.label }),
    processId: intent.process.id,
    length: intent.transcript?.messages.length ?? 0,
    openedSession,
    branchedFromSessionId,
    holds: heldUntilSettled(intent.holds),
    carried: { usd: 0, tokens: 0 },
  };
}

function stepOf(
  intent: StepIntent,
  { sessionId, turnId, keyLabel }: Pick<Step, "sessionId" | "turnId" | "keyLabel">,
): Step {
  const { owner } = intent;
  return {
    id: intent.stepId,
    organizationId: owner.organizationId,
    userId: owner.userId,
    keyId: owner.keyId,
    keyLabel,
    source: intent.source,
    endpoint: intent.endpoint,
    stream: intent.stream,
    requestedModel: intent.requestedModel,
    dataClass: intent.dataClass,
    decisionId: intent.decision.id,
    sessionId,
    turnId,
    stepNumber: intent.stepNumber,
    droppedFields: { ...intent.droppedFields },
    metadata: Object.fromEntries(Object.entries(intent.metadata)),
    idempotencyKeySha256: intent.claim?.keySha256 ?? null,
    retryOf: intent.retryOf,
    openedAt: intent.at,
    settledAt: null,
    outcome: null,
    reason: null,
    finishReason: null,
    attempts: [{ ...intent.attempt, end: null }],
    head: intent.transcript && chainHead(intent.transcript.chain),
    replyHead: null,
  };
}

/** The place of content in a transcript. Null if it is recorded only with its Step. */
type PartPosition = Pick<PartRecord, "position" | "count" | "chain"> | null;

const noChain = new Uint8Array();

/** Content that a Step adds to its Session. */
export function partRecord(
  step: Pick<PartRecord, "organizationId" | "sessionId" | "stepId" | "kind">,
  { content, contentSalt, contentCommitment }: CommittedContent,
  place: PartPosition = null,
): PartRecord {
  return {
    organizationId: step.organizationId,
    sessionId: step.sessionId,
    stepId: step.stepId,
    kind: step.kind,
    position: place?.position ?? null,
    count: place?.count ?? 0,
    chain: place?.chain ?? noChain,
    content,
    contentSalt,
    contentCommitment,
  };
}
