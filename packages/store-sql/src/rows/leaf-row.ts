import type { EvidenceLeaf, LeafKind } from "@tollgate/core/store";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

/** The columns of a leaf's row. */
export const leafColumns = [
  "organization_id",
  "sequence",
  "id",
  "kind",
  "at",
  "meta",
  "hash",
] as const;

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

/** The leaf in a row. */
export function leafFromRow(row: unknown): EvidenceLeaf {
  const read = readRow(row);
  return {
    id: read.text("id"),
    organizationId: read.text("organization_id"),
    kind: kindOf(read.text("kind")),
    at: read.integer("at"),
    meta: read.text("meta"),
    hash: read.bytes("hash"),
  };
}

const kinds: Readonly<Record<LeafKind, true>> = {
  decision: true,
  "step.opened": true,
  "attempt.opened": true,
  "step.settled": true,
  "key.created": true,
  "key.updated": true,
  "key.rotated": true,
  "key.revoked": true,
  "connection.set": true,
  "connection.removed": true,
  "connection.resealed": true,
  "budget.created": true,
  "budget.updated": true,
  "budget.removed": true,
  "budget.raised": true,
  "budget.raise_cancelled": true,
  "rate_limit.created": true,
  "rate_limit.updated": true,
  "rate_limit.removed": true,
  "admin_token.created": true,
  "admin_token.revoked": true,
  "response.deleted": true,
  "activity.removed": true,
  "transcripts.erased": true,
  correction: true,
  "transcript.read": true,
  "policy.changed": true,
};

function kindOf(text: string): LeafKind {
  if (isKind(text)) return text;
  throw new TypeError("column kind has an unknown kind of leaf");
}

function isKind(text: string): text is LeafKind {
  return Object.hasOwn(kinds, text);
}
