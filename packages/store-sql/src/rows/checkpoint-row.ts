import type { Checkpoint, SealedLeaf } from "@tollgate/core/store";
import { leafFromRow } from "./leaf-row.ts";
import { readRow } from "./row-reader.ts";

export const checkpointColumns = [
  "organization_id",
  "number",
  "size",
  "frontier",
  "at",
  "note",
] as const;

export const logLeafColumns = [
  "organization_id",
  "number",
  "id",
  "kind",
  "at",
  "meta",
  "hash",
] as const;

export function checkpointFromRow(row: unknown): Checkpoint {
  const read = readRow(row);
  return {
    organizationId: read.text("organization_id"),
    number: read.integer("number"),
    size: read.integer("size"),
    frontier: read.bytes("frontier"),
    at: read.integer("at"),
    note: read.textOrNull("note"),
  };
}

/** A place in the log. Without its leaf, all columns of the leaf are null. */
export function sealedLeafFromRow(row: unknown): SealedLeaf {
  const read = readRow(row);
  return {
    organizationId: read.text("organization_id"),
    index: read.integer("number"),
    leaf: read.textOrNull("id") === null ? null : leafFromRow(row),
  };
}
