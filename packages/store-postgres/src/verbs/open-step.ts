import { GatewayError, type StepIntent, type StepOpening } from "@tollgate/core/store";
import {
  attemptToRow,
  decisionToRow,
  droppedFieldsJson,
  metadataText,
  type RowReader,
  type SqlParameters,
} from "@tollgate/store-sql";
import type { BatchedCall } from "../database/batches.ts";
import { PostgresFailure } from "../database/failure.ts";
import { arrayOf } from "../database/postgres-dialect.ts";
import { holdsToParameters } from "./holds.ts";

/** Bytes of one value of a transcript chain. */
const valueBytes = 32;

/** Opens a Step in one round trip, or in two where more of the history is new than it seemed. */
export async function openStep(call: BatchedCall, intent: StepIntent): Promise<StepOpening> {
  const { chain, messages, lastUserMessage } = intent.transcript;
  if (chain.length !== messages.length * valueBytes)
    throw new GatewayError("invalid_argument", "The chain needs 32 bytes for each message.");
  const fixed = fixedParameters(intent);
  const open = async (firstMessage: number): Promise<RowReader> => {
    const parameters = { ...fixed, ...messagesFrom(messages, firstMessage) };
    return (await call(parameters).catch(refuseTakenId)).row;
  };
  // What a Session does not have yet is rarely more than the last turn: the rest need not be sent.
  const likely = await open(Math.max(0, lastUserMessage - 1));
  return openingOf(likely.text("result") === "more" ? await open(0) : likely, intent);
}

function openingOf(row: RowReader, { holds }: StepIntent): StepOpening {
  const result = row.text("result");
  switch (result) {
    case "opened":
      return {
        opened: true,
        sessionId: row.text("to_session_id"),
        turnId: row.text("to_turn_id"),
        branchedFromSessionId: row.textOrNull("branched_from"),
      };
    case "budget_exceeded": {
      const hold = holds[row.integer("refused_hold") - 1];
      if (!hold) throw new TypeError("the database refused a hold that was not asked for");
      return { opened: false, refusal: { code: result, hold, left: row.integer("hold_left") } };
    }
    case "invalid_api_key":
    case "key_changed":
    case "session_changed":
    case "session_not_found":
    case "turn_not_found":
    case "budgets_changed":
      return { opened: false, refusal: { code: result } };
    default:
      throw new TypeError("the database answered an opening with something unknown");
  }
}

function refuseTakenId(error: unknown): never {
  if (error instanceof PostgresFailure && error.state === "TG002")
    throw new GatewayError("invalid_argument", "The id for a new Session is taken.");
  throw error;
}

/** The messages from a position on, one after the other as a JSON array has them, and where each begins. */
function messagesFrom(
  messages: StepIntent["transcript"]["messages"],
  first: number,
): SqlParameters {
  const texts = messages.slice(first).map((message) => Buffer.from(message));
  let end = 0;
  const offsets = texts.map(({ length }) => {
    const start = end;
    end += length + 1;
    return start;
  });
  const comma = Buffer.from(",");
  const joined = Buffer.concat(texts.flatMap((text, at) => (at === 0 ? [text] : [comma, text])));
  return { messages: joined, offsets: arrayOf(offsets), first_message: first };
}

function fixedParameters(intent: StepIntent): SqlParameters {
  const { owner, transcript, instructions, decision, leaf } = intent;
  const decided = decisionToRow(owner, decision, 0);
  return {
    ...decided,
    ...attemptToRow(intent.attempt),
    ...holdsToParameters(intent.holds),
    decision_id: decision.id,
    decided_at: decision.at,
    id: intent.stepId,
    source: intent.source,
    endpoint: intent.endpoint,
    stream: intent.stream ? 1 : 0,
    requested_model: intent.requestedModel,
    data_class: intent.dataClass,
    step_number: intent.stepNumber,
    dropped_fields: droppedFieldsJson(intent.droppedFields),
    metadata: metadataText(intent.metadata),
    process_id: intent.process.id,
    renewal: intent.process.renewal,
    opened_at: intent.at,
    holds: intent.holds.length,
    named_session_id: transcript.sessionId,
    named_turn_id: transcript.turnId,
    considered_session_id: transcript.alsoConsider,
    new_session_id: transcript.newSessionId,
    new_turn_id: transcript.newTurnId,
    chain: transcript.chain,
    last_user_message: transcript.lastUserMessage,
    keeps_content: transcript.keep === "full" ? 1 : 0,
    content_salt: transcript.contentSalt,
    expects_session: transcript.expectedSession === undefined ? 0 : 1,
    expected_session_id: transcript.expectedSession?.sessionId ?? null,
    expected_classes: JSON.stringify(transcript.expectedSession?.dataClasses ?? []),
    instructions: instructions?.content ?? null,
    instructions_salt: instructions?.contentSalt ?? null,
    instructions_commitment: instructions?.contentCommitment ?? null,
    key_version: intent.keyVersion,
    budgets_version: intent.budgetsVersion,
    leaf_id: leaf.id,
    leaf_kind: leaf.kind,
    leaf_at: leaf.at,
    leaf_before: leaf.before,
    leaf_after: leaf.after,
  };
}
