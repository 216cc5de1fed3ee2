import {
  fillLeaf,
  GatewayError,
  keyIsLive,
  type OpeningRefusal,
  type StepIntent,
  type StepOpening,
} from "@tollgate/core/store";
import {
  administration,
  decisionToRow,
  leafToRow,
  opening,
  readRow,
  stepToRow,
} from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { appendInstructions } from "./append-instructions.ts";
import { assignSession } from "./assign-session.ts";
import { chainHead, chainLength } from "./chain.ts";
import { takeHolds } from "./holds.ts";
import { type Joined, joinSession } from "./join-session.ts";

export async function openStep(transaction: Transaction, intent: StepIntent): Promise<StepOpening> {
  const { owner, stepId, transcript } = intent;
  const known = await transaction.get(opening.knownStep, {
    organization_id: owner.organizationId,
    id: stepId,
  });
  if (known) return openingOf(known);
  if (chainLength(transcript.chain) !== transcript.messages.length)
    throw new GatewayError("invalid_argument", "The chain needs 32 bytes for each message.");
  const keyLabel = await liveKeyLabel(transaction, intent);
  if (keyLabel === null) return refuse({ code: "invalid_api_key" });
  const assignment = await assignSession(transaction, intent);
  if ("code" in assignment) return refuse(assignment);
  if (intent.budgetsVersion !== (await budgetsVersion(transaction)))
    return refuse({ code: "budgets_changed" });
  const holder = { organizationId: owner.organizationId, stepId, attempt: intent.attempt.number };
  const hold = await takeHolds(transaction, holder, intent.holds);
  if (hold) return refuse({ code: "budget_exceeded", hold });

  const joined = await joinSession(transaction, intent, assignment);
  await appendInstructions(transaction, intent, joined.sessionId);
  await writeStep(transaction, intent, keyLabel, joined);
  return {
    opened: true,
    sessionId: joined.sessionId,
    turnId: joined.turnId,
    branchedFromSessionId: joined.branchedFromSessionId,
  };
}

async function budgetsVersion(transaction: Transaction): Promise<number> {
  return readRow(await transaction.get(administration.readState, {})).integer("budgets_version");
}

function refuse(refusal: OpeningRefusal): StepOpening {
  return { opened: false, refusal };
}

/** The Step was opened before: the caller did not learn of it and asks again. */
function openingOf(row: unknown): StepOpening {
  const read = readRow(row);
  return {
    opened: true,
    sessionId: read.text("session_id"),
    turnId: read.text("turn_id"),
    branchedFromSessionId: read.textOrNull("branched_from_session_id"),
  };
}

/** The key's label, or null when the key is gone, another user's, revoked or expired. */
async function liveKeyLabel(
  transaction: Transaction,
  { owner, at }: StepIntent,
): Promise<string | null> {
  const row = await transaction.get(opening.key, {
    organization_id: owner.organizationId,
    key_id: owner.keyId,
  });
  if (row === undefined) return null;
  const read = readRow(row);
  const key = {
    expiresAt: read.integerOrNull("expires_at"),
    revokedAt: read.integerOrNull("revoked_at"),
  };
  return read.text("user_id") === owner.userId && keyIsLive(key, at) ? read.text("label") : null;
}

async function writeStep(
  transaction: Transaction,
  intent: StepIntent,
  keyLabel: string,
  joined: Joined,
): Promise<void> {
  const { owner, stepId, process, decision, transcript } = intent;
  const { openedSession, ...assignment } = joined;
  const place = {
    ...joined,
    keyLabel,
    head: chainHead(transcript.chain),
    length: transcript.messages.length,
    sequence: await transaction.next(),
  };
  await transaction.run(opening.insertStep, stepToRow(intent, place));
  await transaction.run(opening.insertOpenStep, {
    process_id: process.id,
    step_id: stepId,
    organization_id: owner.organizationId,
    renewal: process.renewal,
    output_tokens: null,
  });
  await transaction.run(opening.insertDecision, decisionToRow(owner, decision, place.sequence));
  const leaf = fillLeaf(intent.leaf, assignment);
  await transaction.run(opening.insertLeaf, leafToRow(leaf, await transaction.next()));
}
