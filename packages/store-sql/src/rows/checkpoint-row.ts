import type { Checkpoint, SealedLeaf } from "@tollgate/core/store";
import { columnsOf } from "../tables.ts";
import { describeRow } from "./describe-row.ts";
import { leafFromRow } from "./leaf-row.ts";
import { readRow } from "./row-reader.ts";

/** The rows of checkpoints. */
export const checkpointRows = describeRow<Checkpoint>({
  organizationId: "text",
  number: "integer",
  size: "integer",
  frontier: "bytes",
  at: "integer",
  note: "textOrNull",
});

/** The columns of a leaf, with its index in place of its sequence. */
export const logLeafColumns = columnsOf("leaves").map((column) =>
  column === "sequence" ? "number" : column,
);

/** A place in the log. Without its leaf, all columns of the leaf are null. */
export function sealedLeafFromRow(row: unknown): SealedLeaf {
  const read = readRow(row);
  return {
    organizationId: read.text("organization_id"),
    index: read.integer("number"),
    leaf: read.textOrNull("id") === null ? null : leafFromRow(row),
  };
}
