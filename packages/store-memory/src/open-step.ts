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
import { type Assignment, assignSession, foundBy } from "./assign-session.ts";
import { copyOf } from "./copy-content.ts";
import {
  chainValueBytes,
  type SessionRow,
  type State,
  type StepRow,
  touchSession,
} from "./state.ts";
import { heldFor } from "./step-holds.ts";

export function openStep(state: State, intent: StepIntent): StepOpening {
  const { owner, transcript } = intent;
  const known = state.steps.get(owner.organizationId, intent.stepId);
  if (known) return openingOf(known);
  if (transcript.chain.length !== transcript.messages.length * chainValueBytes)
    throw new GatewayError("invalid_argument", "The chain needs 32 bytes for each message.");
  const key = liveKey(state, intent);
  if (key === null) return refuse({ code: "invalid_api_key" });
  if (key.version !== intent.keyVersion) return refuse({ code: "key_changed" });

  const chain = Buffer.from(transcript.chain).toString("hex");
  const assignment = assignSession(state, intent, chain);
  if ("code" in assignment) return refuse(assignment);
  if (!isExpectedSession(transcript.expectedSession, foundBy(assignment)))
    return refuse({ code: "session_changed" });

  if (intent.budgetsVersion !== state.budgetsVersion) return refuse({ code: "budgets_changed" });
  const draft = state.counters.draft();
  const refused = draft.take(intent.holds);
  if (refused) return refuse({ code: "budget_exceeded", ...refused });

  const row = write(state, intent, assignment, chain);
  draft.commit();
  return openingOf(row);
}

function refuse(refusal: OpeningRefusal): StepOpening {
  return { opened: false, refusal };
}

function openingOf({ step, session, branched }: StepRow): StepOpening {
  return {
    opened: true,
    sessionId: step.sessionId,
    turnId: step.turnId,
    branchedFromSessionId: branched ? (session.branchedFrom?.id ?? null) : null,
  };
}

function liveKey(state: State, { owner, at }: StepIntent): ApiKey | null {
  const key = state.keys.get(owner.organizationId, owner.keyId)?.key;
  return key?.userId === owner.userId && keyIsLive(key, at) ? key : null;
}

function write(state: State, intent: StepIntent, assignment: Assignment, chain: string): StepRow {
  const { owner, transcript } = intent;
  const common = foundBy(assignment)?.commonLength ?? 0;
  const session =
    assignment.kind === "continue" ? assignment.session : createSession(state, intent, assignment);
  const beginsTurn = assignment.kind !== "continue" || transcript.lastUserMessage > common;
  const turnId = beginsTurn ? transcript.newTurnId : (transcript.turnId ?? session.latestTurnId);
  if (beginsTurn) {
    session.latestTurnId = turnId;
    state.turns.insert({ ...owner, id: turnId, session });
  }
  const contentCommitment = appendMessages(session, intent, common, chain);
  const row = createStep(state, intent, session, turnId, assignment.kind === "branch");
  if (assignment.kind !== "continue") session.createdBy = row;
  session.dataClasses.add(intent.dataClass);
  touchSession(state, session, intent.at);
  session.steps.add(row);
  session.holdsContent ||= contentCommitment !== null || row.instructions !== null;
  state.steps.insert(row);
  row.openSlot = state.openSteps.add(row);
  if (row.holds.length > 0) state.holders.add(row);
  state.decisions.insert({ ...owner, id: intent.decision.id, decision: intent.decision });
  state.leaves.insert(
    fillLeaf(intent.leaf, {
      sessionId: session.id,
      turnId,
      branchedFromSessionId: assignment.kind === "branch" ? assignment.origin.id : null,
      commonLength: common,
      contentCommitment,
    }),
  );
  return row;
}

function createSession(state: State, intent: StepIntent, assignment: Assignment): SessionRow {
  const { owner, transcript, at } = intent;
  const origin = assignment.kind === "branch" ? assignment.origin : null;
  const session: SessionRow = {
    ...owner,
    id: transcript.newSessionId,
    source: intent.source,
    createdAt: at,
    branchedFrom: origin,
    commonLength: foundBy(assignment)?.commonLength ?? 0,
    branches: [],
    parts: [],
    steps: new Set(),
    holdsContent: false,
    createdBy: null,
    chain: "",
    head: "",
    length: 0,
    dataClasses: new Set(origin?.dataClasses),
    latestTurnId: transcript.newTurnId,
    updatedAt: at,
    updated: 0,
  };
  if (!state.sessions.insert(session))
    throw new GatewayError("invalid_argument", "The id for a new Session is taken.");
  origin?.branches.push(session);
  return session;
}

/** Appends what the Session does not have yet; returns the commitment to it, or null when nothing is new. */
function appendMessages(
  session: SessionRow,
  intent: StepIntent,
  common: number,
  chain: string,
): Uint8Array | null {
  const { messages, keep, contentSalt } = intent.transcript;
  const count = messages.length - common;
  session.chain = chain;
  session.head = chain.slice(-2 * chainValueBytes);
  session.length = messages.length;
  if (count === 0) return null;
  const bytes = Buffer.from(`[${messages.slice(common).join(",")}]`);
  // A copy of its own: a short Buffer is a slice of a shared slab, which it would keep as long as itself.
  const content = keep === "full" ? new Uint8Array(bytes) : null;
  session.parts.push({ stepId: intent.stepId, kind: "request", from: common, count, content });
  return commitContent(contentSalt, bytes);
}

function createStep(
  state: State,
  intent: StepIntent,
  session: SessionRow,
  turnId: string,
  branched: boolean,
): StepRow {
  const { owner, stepId, instructions } = intent;
  const keyLabel = state.keys.get(owner.organizationId, owner.keyId)?.key.label ?? "";
  return {
    id: stepId,
    organizationId: owner.organizationId,
    process: intent.process,
    session,
    branched,
    length: session.length,
    step: { ...stepOf(intent), keyLabel, sessionId: session.id, turnId, head: session.head },
    instructions: instructions && copyOf(instructions),
    holds: heldFor(intent.attempt.number, intent.holds),
    carried: { usd: 0, tokens: 0 },
    outputTokens: null,
    namedAt: 0,
    openSlot: null,
    reply: null,
    reasoning: null,
  };
}

/** What the intent alone says of a Step in flight. */
function stepOf(intent: StepIntent): Omit<Step, "keyLabel" | "sessionId" | "turnId" | "head"> {
  return {
    ...intent.owner,
    id: intent.stepId,
    source: intent.source,
    endpoint: intent.endpoint,
    stream: intent.stream,
    requestedModel: intent.requestedModel,
    dataClass: intent.dataClass,
    decisionId: intent.decision.id,
    stepNumber: intent.stepNumber,
    droppedFields: { ...intent.droppedFields },
    metadata: Object.fromEntries(Object.entries(intent.metadata)),
    openedAt: intent.at,
    settledAt: null,
    outcome: null,
    reason: null,
    finishReason: null,
    attempts: [{ ...intent.attempt, end: null }],
    replyHead: null,
  };
}
