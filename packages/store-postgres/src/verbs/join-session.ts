import {
  commitContent,
  GatewayError,
  type StepAssignment,
  type StepIntent,
} from "@tollgate/core/store";
import { opening } from "@tollgate/store-sql";
import { PostgresFailure } from "../database/failure.ts";
import type { Transaction } from "../database/transaction.ts";
import type { Assignment } from "./assign-session.ts";
import { chainHead, chainSlice } from "./chain.ts";

/** What a Step became part of. */
export interface Joined extends StepAssignment {
  readonly openedSession: boolean;
}

/** Makes or extends the Session, begins a Turn where the request has a new user message, and appends what is new. */
export async function joinSession(
  transaction: Transaction,
  intent: StepIntent,
  assignment: Assignment,
): Promise<Joined> {
  const { transcript } = intent;
  const continued = assignment.kind === "continue" ? assignment.session : null;
  const branched = assignment.kind === "branch" ? assignment : null;
  const commonLength = continued?.length ?? branched?.commonLength ?? 0;
  const beginsTurn = !continued || transcript.lastUserMessage > commonLength;
  const joined = {
    sessionId: continued?.id ?? transcript.newSessionId,
    turnId: beginsTurn ? transcript.newTurnId : (transcript.turnId ?? continued.turnId),
    branchedFromSessionId: branched?.originId ?? null,
    commonLength,
    openedSession: !continued,
  };
  if (continued) {
    const latestTurnId = beginsTurn ? joined.turnId : continued.turnId;
    const unchanged = continued.inFlight && commonLength === transcript.messages.length;
    await extendSession(transaction, intent, {
      ...joined,
      turnId: latestTurnId,
      inFlight: unchanged,
    });
  } else await createSession(transaction, intent, joined);
  if (beginsTurn) await beginTurn(transaction, intent, joined);
  return { ...joined, contentCommitment: await appendMessages(transaction, intent, joined) };
}

type Place = Omit<Joined, "contentCommitment">;

async function createSession(
  transaction: Transaction,
  intent: StepIntent,
  place: Place,
): Promise<void> {
  const { owner, transcript, at } = intent;
  const written = await transaction.run(opening.insertSession, {
    organization_id: owner.organizationId,
    id: transcript.newSessionId,
    user_id: owner.userId,
    key_id: owner.keyId,
    source: intent.source,
    head: chainHead(transcript.chain),
    length: transcript.messages.length,
    created_at: at,
    updated_at: at,
    updated: await transaction.next(),
    in_flight: 1,
    turn_id: place.turnId,
    branched_from_session_id: place.branchedFromSessionId,
    common_length: place.commonLength,
  });
  if (written === 0) await refuseTakenId(transaction, intent);
}

/** The id is taken: by this very Step, opened by an earlier call meanwhile, or by another. */
async function refuseTakenId(
  transaction: Transaction,
  { owner, stepId }: StepIntent,
): Promise<never> {
  const known = await transaction.get(opening.knownStep, {
    organization_id: owner.organizationId,
    id: stepId,
  });
  if (known) throw new PostgresFailure("the Step was opened meanwhile", { isPassing: true });
  throw new GatewayError("invalid_argument", "The id for a new Session is taken.");
}

async function extendSession(
  transaction: Transaction,
  { owner, transcript, at }: StepIntent,
  place: Place & { readonly inFlight: boolean },
): Promise<void> {
  await transaction.run(opening.extendSession, {
    organization_id: owner.organizationId,
    id: place.sessionId,
    head: chainHead(transcript.chain),
    length: transcript.messages.length,
    updated: await transaction.next(),
    updated_at: at,
    in_flight: place.inFlight ? 1 : 0,
    turn_id: place.turnId,
  });
}

async function beginTurn(
  transaction: Transaction,
  { owner }: StepIntent,
  place: Place,
): Promise<void> {
  await transaction.run(opening.insertTurn, {
    organization_id: owner.organizationId,
    id: place.turnId,
    session_id: place.sessionId,
  });
}

/** Appends what the Session does not have yet; returns the commitment to it, or null when nothing is new. */
async function appendMessages(
  transaction: Transaction,
  { owner, stepId, transcript }: StepIntent,
  { sessionId, commonLength }: Place,
): Promise<Uint8Array | null> {
  const { messages, chain, keep, contentSalt } = transcript;
  if (messages.length === commonLength) return null;
  const content = Buffer.from(`[${messages.slice(commonLength).join(",")}]`);
  const commitment = commitContent(contentSalt, content);
  await transaction.run(opening.insertPart, {
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
