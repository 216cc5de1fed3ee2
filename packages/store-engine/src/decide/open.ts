import {
  type ApiKey,
  commitContent,
  fillLeaf,
  GatewayError,
  isExpectedSession,
  keyIsLive,
  type OpeningRefusal,
  type Step,
  type StepIntent,
  type StepOpening,
} from "@tollgate/core/store";
import { chainHead, chainLength, chainSlice } from "../chain.ts";
import { type Decision, type Operation, unchanged } from "../change.ts";
import type { PartRecord, SessionRecord, StepRecord } from "../records.ts";
import type { View } from "../view.ts";
import { type Assignment, assignSession, foundBy } from "./assign.ts";
import { CounterDraft, heldFor, refusedHold } from "./hold.ts";
import { partOf } from "./part.ts";

/**
 * Opens a Step: key, Session, budgets and holds are looked at in this order, and the first that does not allow it
 * refuses. Asked again for a Step that was opened, it says what it said then.
 * @throws GatewayError `invalid_argument` for a chain that does not fit its messages
 */
export function openStep(view: View, intent: StepIntent): Decision<StepOpening> {
  const { owner, stepId, transcript } = intent;
  const known = view.openedBefore(owner.organizationId, stepId);
  if (known) return unchanged(openingOf(known));
  if (chainLength(transcript.chain) !== transcript.messages.length)
    throw new GatewayError("invalid_argument", "The chain needs 32 bytes for each message.");
  const key = view.key(owner.organizationId, owner.keyId);
  if (key?.userId !== owner.userId || !keyIsLive(key, intent.at))
    return refuse({ code: "invalid_api_key" });
  if (key.version !== intent.keyVersion) return refuse({ code: "key_changed" });
  const assignment = assignSession(view, intent);
  if ("code" in assignment) return refuse(assignment);
  if (!isExpectedSession(transcript.expectedSession, foundBy(assignment)))
    return refuse({ code: "session_changed" });
  if (intent.budgetsVersion !== view.budgetsVersion()) return refuse({ code: "budgets_changed" });
  const counters = new CounterDraft(view);
  const refused = counters.take(intent.holds);
  if (refused) return refuse({ code: "budget_exceeded", ...refused });

  const record = stepRecord(intent, key, placeOf(intent, assignment));
  const { organizationId } = owner;
  const holder = { organizationId, stepId, attempt: intent.attempt.number };
  const change = rowsOf(intent, assignment, record);
  change.push(...counters.operations(), ...heldFor(holder, intent.holds));
  return {
    result: openingOf(record),
    change,
    unlessItFits: (counter, left) => {
      const unfit = refusedHold(intent.holds, counter, left);
      return { opened: false, refusal: { code: "budget_exceeded", ...unfit } };
    },
  };
}

function refuse(refusal: OpeningRefusal): Decision<StepOpening> {
  return unchanged({ opened: false, refusal });
}

function openingOf({ step, branchedFromSessionId }: StepRecord): StepOpening {
  const { sessionId, turnId } = step;
  return { opened: true, sessionId, turnId, branchedFromSessionId };
}

/** What a Step becomes part of. */
interface Place {
  readonly sessionId: string;
  readonly turnId: string;
  readonly openedSession: boolean;
  readonly branchedFromSessionId: string | null;
}

/** A Turn begins with a Session, or with a user message that is new to it. */
function beginsTurn({ transcript }: StepIntent, assignment: Assignment): boolean {
  return assignment.kind !== "continue" || transcript.lastUserMessage > assignment.session.length;
}

function placeOf(intent: StepIntent, assignment: Assignment): Place {
  const { newSessionId, newTurnId, turnId } = intent.transcript;
  const begins = beginsTurn(intent, assignment);
  if (assignment.kind !== "continue") {
    const branchedFromSessionId = assignment.kind === "branch" ? assignment.origin.id : null;
    const made = { sessionId: newSessionId, turnId: newTurnId };
    return { ...made, openedSession: true, branchedFromSessionId };
  }
  const { session } = assignment;
  return {
    sessionId: session.id,
    turnId: begins ? newTurnId : (turnId ?? session.turnId),
    openedSession: false,
    branchedFromSessionId: null,
  };
}

/** Every row of a Step that opens, but for its holds. */
function rowsOf(intent: StepIntent, assignment: Assignment, record: StepRecord): Operation[] {
  const { owner, decision } = intent;
  const { sessionId, turnId } = record.step;
  const commonLength = foundBy(assignment)?.commonLength ?? 0;
  const request = newMessages(intent, sessionId, commonLength);
  const change: Operation[] = [
    { write: "insert step", row: record, renewal: intent.process.renewal },
    sessionWith(intent, assignment, turnId),
  ];
  if (beginsTurn(intent, assignment))
    change.push({ write: "insert turn", row: { ...owner, id: turnId, sessionId } });
  if (request) change.push({ write: "insert part", row: request });
  const instructions = instructionsOf(intent, sessionId);
  if (instructions) change.push({ write: "insert part", row: instructions });
  change.push({ write: "insert decision", row: { owner, decision } });
  const leaf = fillLeaf(intent.leaf, {
    sessionId,
    turnId,
    branchedFromSessionId: record.branchedFromSessionId,
    commonLength,
    contentCommitment: request?.contentCommitment ?? null,
  });
  change.push({ write: "insert leaf", row: leaf });
  return change;
}

/** The Session as the request leaves it. */
function sessionWith(intent: StepIntent, assignment: Assignment, turnId: string): Operation {
  const { owner, transcript, at } = intent;
  const length = transcript.messages.length;
  const head = chainHead(transcript.chain);
  const before = sessionOf(assignment);
  const dataClasses = withClass(before?.dataClasses ?? [], intent.dataClass);
  if (assignment.kind === "continue") {
    const { session } = assignment;
    // Another Turn of it than the latest can be named: that one stays the latest.
    const latest = beginsTurn(intent, assignment) ? turnId : session.turnId;
    const inFlight = session.inFlight && session.length === length;
    const changed = { head, length, dataClasses, inFlight, turnId: latest, updatedAt: at };
    return { write: "update session", row: { ...session, ...changed } };
  }
  const row: SessionRecord = {
    ...owner,
    id: transcript.newSessionId,
    source: intent.source,
    head,
    length,
    dataClasses,
    createdAt: at,
    updatedAt: at,
    branchedFromSessionId: before?.id ?? null,
    commonLength: foundBy(assignment)?.commonLength ?? 0,
    updated: 0,
    inFlight: true,
    turnId,
  };
  return { write: "insert session", row };
}

function sessionOf(assignment: Assignment): SessionRecord | null {
  if (assignment.kind === "create") return null;
  return assignment.kind === "continue" ? assignment.session : assignment.origin;
}

function withClass(classes: readonly string[], dataClass: string): readonly string[] {
  return classes.includes(dataClass) ? classes : [...classes, dataClass];
}

/** What the Session does not have yet; null when nothing is new. */
function newMessages(
  { owner, stepId, transcript }: StepIntent,
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

function instructionsOf(
  { owner, stepId, instructions }: StepIntent,
  sessionId: string,
): PartRecord | null {
  const { organizationId } = owner;
  const step = { organizationId, sessionId, stepId, kind: "instructions" } as const;
  return instructions && partOf(step, instructions);
}

function stepRecord(
  intent: StepIntent,
  key: Pick<ApiKey, "label">,
  { sessionId, turnId, openedSession, branchedFromSessionId }: Place,
): StepRecord {
  return {
    step: stepOf(intent, { sessionId, turnId, keyLabel: key.label }),
    processId: intent.process.id,
    length: intent.transcript.messages.length,
    openedSession,
    branchedFromSessionId,
    holds: intent.holds.length,
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
    openedAt: intent.at,
    settledAt: null,
    outcome: null,
    reason: null,
    finishReason: null,
    attempts: [{ ...intent.attempt, end: null }],
    head: chainHead(intent.transcript.chain),
    replyHead: null,
  };
}
