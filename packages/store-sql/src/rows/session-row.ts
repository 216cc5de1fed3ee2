import type { Session } from "@tollgate/core/store";
import { readRow } from "./row-reader.ts";

/** The columns of a Session's row. */
export const sessionColumns = [
  "organization_id",
  "id",
  "user_id",
  "key_id",
  "source",
  "head",
  "length",
  "created_at",
  "updated_at",
  "updated",
  "in_flight",
  "turn_id",
  "branched_from_session_id",
  "common_length",
  "data_classes",
] as const;

/** A Session with what only the assignment needs. */
export interface SessionRecord extends Session {
  readonly headBytes: Uint8Array;
  /** The store's sequence at its last opening or settling. */
  readonly updated: number;
  /** Whether the Step that made it is in flight and nothing was added since. */
  readonly inFlight: boolean;
  readonly turnId: string;
}

/** The Session a row holds. */
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

/** The Session a row holds, with what only the assignment needs. */
export function sessionRecordFromRow(row: unknown): SessionRecord {
  const read = readRow(row);
  return {
    ...sessionFromRow(row),
    headBytes: read.bytes("head"),
    updated: read.integer("updated"),
    inFlight: read.integer("in_flight") === 1,
    turnId: read.text("turn_id"),
  };
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}
