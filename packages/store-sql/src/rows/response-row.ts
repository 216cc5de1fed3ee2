import type { ResponseHistory, StoredResponse } from "@tollgate/core/store";
import type { ResponseRecord, RowName } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";
import { describeRow } from "./describe-row.ts";
import { readRow } from "./row-reader.ts";
import { fromHex } from "./session-row.ts";

/** The rows that stored responses are read from, with the content in the last columns. */
export const responseRows = describeRow<StoredResponse>({
  id: "text",
  organizationId: "text",
  userId: "text",
  keyId: "text",
  stepId: "text",
  sessionId: "text",
  dataClass: "text",
  previousResponseId: "textOrNull",
  createdAt: "integer",
  expiresAt: "integer",
  body: "bytes",
  input: "bytes",
});

/** A stored response with what its history needs, as the parameters of its row. */
export function responseRecordToRow(response: ResponseRecord): SqlParameters {
  const { idempotencyKeySha256 } = response;
  return {
    ...responseRows.toRow(response),
    messages: response.messages,
    built_on: response.builtOn,
    inherited: response.inherited,
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
