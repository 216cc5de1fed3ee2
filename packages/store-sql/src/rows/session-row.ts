import type { Session } from "@tollgate/core/store";
import type { SessionState } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";
import { columnsOf } from "../tables.ts";
import { readRow } from "./row-reader.ts";

/** The columns of a Session's row. */
export const sessionColumns = columnsOf("sessions");

/** A Session as the parameters of its row; `updated` is its place in the order of the store's writes. */
export function sessionToRow(session: SessionState, updated: number): SqlParameters {
  return {
    organization_id: session.organizationId,
    id: session.id,
    user_id: session.userId,
    key_id: session.keyId,
    source: session.source,
    head: fromHex(session.head),
    length: session.length,
    created_at: session.createdAt,
    updated_at: session.updatedAt,
    updated,
    in_flight: session.inFlight ? 1 : 0,
    turn_id: session.turnId,
    branched_from_session_id: session.branchedFromSessionId,
    common_length: session.commonLength,
    root_session_id: session.rootSessionId,
    history_from_session_id: session.historyFromSessionId,
    data_classes: JSON.stringify(session.dataClasses),
  };
}

/** The Session in a row. */
export function sessionFromRow(row: unknown): Session {
  const read = readRow(row);
  return {
    id: read.text("id"),
    organizationId: read.text("organization_id"),
    userId: read.text("user_id"),
    keyId: read.text("key_id"),
    source: read.text("source"),
    head: toHex(read.bytes("head")),
    length: read.integer("length"),
    dataClasses: read.json("data_classes"),
    createdAt: read.integer("created_at"),
    updatedAt: read.integer("updated_at"),
    branchedFromSessionId: read.textOrNull("branched_from_session_id"),
    commonLength: read.integer("common_length"),
  };
}

/** The Session in a row, with the fields that only the rules read. */
export function sessionRecordFromRow(row: unknown): SessionState {
  const read = readRow(row);
  return {
    ...sessionFromRow(row),
    updated: read.integer("updated"),
    inFlight: read.integer("in_flight") === 1,
    turnId: read.text("turn_id"),
    rootSessionId: read.textOrNull("root_session_id"),
    historyFromSessionId: read.textOrNull("history_from_session_id"),
  };
}

export function fromHex(digest: string): Uint8Array {
  return Buffer.from(digest, "hex");
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}
