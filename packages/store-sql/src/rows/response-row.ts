import type { StoredResponse } from "@tollgate/core/store";
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
  "messages",
] as const;

/** The columns of a stored response, with its link or its inherited items. */
export const responseRecordColumns = [
  ...responseColumns,
  ...["built_on", "inherited", "idempotency_key"],
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
    messages: response.messages,
  };
}

/** A stored response with what its history needs, as the parameters of its row. */
export function responseRecordToRow(response: ResponseRecord): SqlParameters {
  const { builtOn, inherited, idempotencyKeySha256 } = response;
  return {
    ...responseToRow(response),
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
    messages: read.bytes("messages"),
  };
}
