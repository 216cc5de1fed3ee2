import {
  commitContent,
  GatewayError,
  type StepAssignment,
  type StepIntent,
} from "@tollgate/core/store";
import { opening } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import type { Assignment } from "./assign-session.ts";
import { chainHead, chainSlice } from "./chain.ts";

/** What a Step became part of. */
export interface Joined extends StepAssignment {
  readonly openedSession: boolean;
}

/** Makes or extends the Session, begins a Turn where the request has a new user message, and appends what is new. */
export function joinSession(
  transaction: Transaction,
  intent: StepIntent,
  assignment: Assignment,
): Joined {
  const { transcript } = intent;
  const continued = assignment.kind === "continue" ? assignment.session : null;
  const branched = assignment.kind === "branch" ? assignment : null;
  const commonLength = continued?.length ?? branched?.commonLength ?? 0;
  const beginsTurn = !continued || transcript.lastUserMessage > commonLength;
  const handled = continued?.dataClasses ?? branched?.origin.dataClasses ?? [];
  const joined = {
    sessionId: continued?.id ?? transcript.newSessionId,
    turnId: beginsTurn ? transcript.newTurnId : (transcript.turnId ?? continued.turnId),
    branchedFromSessionId: branched?.origin.id ?? null,
    commonLength,
    openedSession: !continued,
  };
  const dataClasses = [...new Set([...handled, intent.dataClass])];
  if (continued) {
    const latestTurnId = beginsTurn ? joined.turnId : continued.turnId;
    const unchanged = continued.inFlight && commonLength === transcript.messages.length;
    const place = { ...joined, dataClasses, turnId: latestTurnId };
    extendSession(transaction, intent, { ...place, inFlight: unchanged });
  } else createSession(transaction, intent, { ...joined, dataClasses });
  if (beginsTurn) beginTurn(transaction, intent, joined);
  return { ...joined, contentCommitment: appendMessages(transaction, intent, joined) };
}

type Place = Omit<Joined, "contentCommitment">;

type SessionPlace = Place & { readonly dataClasses: readonly string[] };

function createSession(transaction: Transaction, intent: StepIntent, place: SessionPlace): void {
  const { owner, transcript, at } = intent;
  const written = transaction.run(opening.insertSession, {
    organization_id: owner.organizationId,
    id: transcript.newSessionId,
    user_id: owner.userId,
    key_id: owner.keyId,
    source: intent.source,
    head: chainHead(transcript.chain),
    length: transcript.messages.length,
    created_at: at,
    updated_at: at,
    updated: transaction.next(),
    in_flight: 1,
    turn_id: place.turnId,
    branched_from_session_id: place.branchedFromSessionId,
    common_length: place.commonLength,
    data_classes: JSON.stringify(place.dataClasses),
  });
  if (written === 0)
    throw new GatewayError("invalid_argument", "The id for a new Session is taken.");
}

function extendSession(
  transaction: Transaction,
  { owner, transcript, at }: StepIntent,
  place: SessionPlace & { readonly inFlight: boolean },
): void {
  transaction.run(opening.extendSession, {
    organization_id: owner.organizationId,
    id: place.sessionId,
    head: chainHead(transcript.chain),
    length: transcript.messages.length,
    updated: transaction.next(),
    updated_at: at,
    in_flight: place.inFlight ? 1 : 0,
    turn_id: place.turnId,
    data_classes: JSON.stringify(place.dataClasses),
  });
}

function beginTurn(transaction: Transaction, { owner }: StepIntent, place: Place): void {
  transaction.run(opening.insertTurn, {
    organization_id: owner.organizationId,
    id: place.turnId,
    session_id: place.sessionId,
  });
}

/** Appends what the Session does not have yet; returns the commitment to it, or null when nothing is new. */
function appendMessages(
  transaction: Transaction,
  { owner, stepId, transcript }: StepIntent,
  { sessionId, commonLength }: Place,
): Uint8Array | null {
  const { messages, chain, keep, contentSalt } = transcript;
  if (messages.length === commonLength) return null;
  const content = Buffer.from(`[${messages.slice(commonLength).join(",")}]`);
  const commitment = commitContent(contentSalt, content);
  transaction.run(opening.insertPart, {
    organization_id: owner.organizationId,
    session_id: sessionId,
    position: commonLength,
    step_id: stepId,
    kind: "request",
    count: messages.length - commonLength,
    chain: chainSlice(chain, commonLength),
    content: keep === "full" ? content : null,
    salt: contentSalt,
    commitment,
  });
  return commitment;
}
