import { changeKinds, type EvidenceLeaf, nonChangeKinds } from "@tollgate/core/store";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

/** A leaf as the parameters of its row; `sequence` is its place in the order of the store's writes. */
export function leafToRow(leaf: EvidenceLeaf, sequence: number): SqlParameters {
  return {
    organization_id: leaf.organizationId,
    sequence,
    id: leaf.id,
    kind: leaf.kind,
    at: leaf.at,
    meta: leaf.meta,
    hash: leaf.hash,
  };
}

const leafKinds = [...nonChangeKinds, ...changeKinds];

/** The leaf in a row. */
export function leafFromRow(row: unknown): EvidenceLeaf {
  const read = readRow(row);
  return {
    id: read.text("id"),
    organizationId: read.text("organization_id"),
    kind: read.oneOf("kind", leafKinds),
    at: read.integer("at"),
    meta: read.text("meta"),
    hash: read.bytes("hash"),
  };
}
