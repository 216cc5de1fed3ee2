import {
  fillLeaf,
  GatewayError,
  isExpectedSession,
  keyIsLive,
  type OpeningRefusal,
  type StepIntent,
  type StepOpening,
} from "@tollgate/core/store";
import {
  decisionToRow,
  instructionsPosition,
  leafToRow,
  opening,
  readRow,
  stepToRow,
} from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { appendToStep } from "./append-to-step.ts";
import { assignSession, foundBy } from "./assign-session.ts";
import { chainHead, chainLength } from "./chain.ts";
import { takeHolds } from "./holds.ts";
import { type Joined, joinSession } from "./join-session.ts";

export function openStep(transaction: Transaction, intent: StepIntent): StepOpening {
  const { owner, stepId, transcript } = intent;
  const known = transaction.get(opening.knownStep, {
    organization_id: owner.organizationId,
    id: stepId,
  });
  if (known) return openingOf(known);
  if (chainLength(transcript.chain) !== transcript.messages.length)
    throw new GatewayError("invalid_argument", "The chain needs 32 bytes for each message.");
  const key = liveKey(transaction, intent);
  if (key === null) return refuse({ code: "invalid_api_key" });
  if (key.version !== intent.keyVersion) return refuse({ code: "key_changed" });
  const assignment = assignSession(transaction, intent);
  if ("code" in assignment) return refuse(assignment);
  if (!isExpectedSession(transcript.expectedSession, foundBy(assignment)))
    return refuse({ code: "session_changed" });
  if (intent.budgetsVersion !== transaction.budgetsVersion)
    return refuse({ code: "budgets_changed" });
  const holder = { organizationId: owner.organizationId, stepId, attempt: intent.attempt.number };
  const refused = takeHolds(transaction, holder, intent.holds);
  if (refused) return refuse({ code: "budget_exceeded", ...refused });

  const joined = joinSession(transaction, intent, assignment);
  const { instructions } = intent;
  const step = { organizationId: owner.organizationId, sessionId: joined.sessionId, stepId };
  if (instructions) {
    const place = { position: instructionsPosition, kind: "instructions" };
    appendToStep(transaction, step, { ...instructions, ...place });
  }
  writeStep(transaction, intent, key.label, joined);
  return {
    opened: true,
    sessionId: joined.sessionId,
    turnId: joined.turnId,
    branchedFromSessionId: joined.branchedFromSessionId,
  };
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

/** The key as it is now, or null when it is gone, another user's, revoked or expired. */
function liveKey(
  transaction: Transaction,
  { owner, at }: StepIntent,
): { readonly label: string; readonly version: number } | null {
  const row = transaction.get(opening.key, {
    organization_id: owner.organizationId,
    key_id: owner.keyId,
  });
  if (row === undefined) return null;
  const read = readRow(row);
  const key = {
    expiresAt: read.integerOrNull("expires_at"),
    revokedAt: read.integerOrNull("revoked_at"),
  };
  if (read.text("user_id") !== owner.userId || !keyIsLive(key, at)) return null;
  return { label: read.text("label"), version: read.integer("version") };
}

function writeStep(
  transaction: Transaction,
  intent: StepIntent,
  keyLabel: string,
  joined: Joined,
): void {
  const { owner, stepId, process, decision, transcript } = intent;
  const { openedSession, ...assignment } = joined;
  const place = {
    ...joined,
    keyLabel,
    head: chainHead(transcript.chain),
    length: transcript.messages.length,
    sequence: transaction.next(),
  };
  transaction.run(opening.insertStep, stepToRow(intent, place));
  transaction.run(opening.insertOpenStep, {
    process_id: process.id,
    step_id: stepId,
    organization_id: owner.organizationId,
    renewal: process.renewal,
    output_tokens: null,
  });
  transaction.run(opening.insertDecision, decisionToRow(owner, decision, place.sequence));
  const leaf = fillLeaf(intent.leaf, assignment);
  transaction.run(opening.insertLeaf, leafToRow(leaf, transaction.next()));
}
