import type { ResponseHistory, StoredResponse } from "@tollgate/core/store";
import type { ResponseRecord, RowName } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";
import { fromHex } from "./session-row.ts";

/** The columns that a stored response is read from, its content last. */
export const responseColumns = [
  "organization_id",
  "id",
  "user_id",
  "key_id",
  "step_id",
  "session_id",
  "data_class",
  "previous_response_id",
  "created_at",
  "expires_at",
  "body",
  "input",
] as const;

/** The columns of a stored response, with what its history needs. */
export const responseRecordColumns = [
  ...responseColumns,
  ...["messages", "built_on", "inherited", "idempotency_key"],
] as const;

/** A stored response as the parameters of its row. */
function responseToRow(response: StoredResponse): SqlParameters {
  return {
    organization_id: response.organizationId,
    id: response.id,
    user_id: response.userId,
    key_id: response.keyId,
    step_id: response.stepId,
    session_id: response.sessionId,
    data_class: response.dataClass,
    previous_response_id: response.previousResponseId,
    created_at: response.createdAt,
    expires_at: response.expiresAt,
    body: response.body,
    input: response.input,
  };
}

/** A stored response with what its history needs, as the parameters of its row. */
export function responseRecordToRow(response: ResponseRecord): SqlParameters {
  const { messages, builtOn, inherited, idempotencyKeySha256 } = response;
  return {
    ...responseToRow(response),
    messages,
    built_on: builtOn,
    inherited,
    idempotency_key: idempotencyKeySha256 && fromHex(idempotencyKeySha256),
  };
}

const nothing = new Uint8Array();

/** A response that is kept for others, as the parameters of its row. */
export function hiddenResponseToRow({
  organizationId,
  id,
  expiresAt,
}: RowName & Pick<ResponseRecord, "expiresAt">): SqlParameters {
  return {
    organization_id: organizationId,
    id,
    expires_at: expiresAt,
    body: nothing,
    input: nothing,
  };
}

/** The stored response in a row. */
export function responseFromRow(row: unknown): StoredResponse {
  const read = readRow(row);
  return {
    id: read.text("id"),
    organizationId: read.text("organization_id"),
    userId: read.text("user_id"),
    keyId: read.text("key_id"),
    stepId: read.text("step_id"),
    sessionId: read.text("session_id"),
    dataClass: read.text("data_class"),
    previousResponseId: read.textOrNull("previous_response_id"),
    createdAt: read.integer("created_at"),
    expiresAt: read.integer("expires_at"),
    body: read.bytes("body"),
    input: read.bytes("input"),
  };
}

/** The history in the rows of a response and of those it is built on, oldest first. Null if there are none. */
export function historyFromRows(rows: readonly unknown[]): ResponseHistory | null {
  if (rows.length === 0) return null;
  const last = readRow(rows.at(-1));
  return {
    sessionId: last.text("session_id"),
    dataClass: last.text("data_class"),
    messages: rows.flatMap((row) => {
      const read = readRow(row);
      return [read.bytes("inherited"), read.bytes("messages")];
    }),
  };
}
