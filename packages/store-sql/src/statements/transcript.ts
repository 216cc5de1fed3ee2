import { positionsBeside } from "../rows/part-row.ts";

/** One row by its id, in one organization or in any. */
export function selectById(
  table: string,
  columns: readonly string[],
  acrossOrganizations: boolean,
) {
  const selected = columns.map((column) => `r.${column}`).join(", ");
  // Every key begins with the organization, so the joins try each organization in turn, which reads few rows and no
  // whole table.
  return acrossOrganizations
    ? `SELECT ${selected} FROM organizations o CROSS JOIN ${table} r
        WHERE r.organization_id = o.id AND r.id = :id LIMIT 1`
    : `SELECT ${selected} FROM ${table} r
        WHERE r.organization_id = :organization_id AND r.id = :id`;
}

/** Statements on Sessions' lineage, transcripts and owners. */
export const transcriptStatements = {
  parts: `SELECT step_id, kind, position, count, chain, content FROM transcript_parts
    WHERE organization_id = :organization_id AND session_id = :session_id
      AND position >= 0 AND position < :end AND position + count > :from ORDER BY position`,
  /** The parts of one Step, found by position so that no other part of its Session is read. */
  contents: `SELECT kind, content FROM transcript_parts
    WHERE organization_id = :organization_id AND session_id = :session_id AND step_id = :id
      AND position IN (${positionsBeside}, :length,
        (SELECT max(position) FROM transcript_parts
          WHERE organization_id = :organization_id AND session_id = :session_id
            AND position >= 0 AND position < :length))`,
  chains: `SELECT position, count, chain FROM transcript_parts
    WHERE organization_id = :organization_id AND session_id = :session_id
      AND position >= 0 AND position < :end ORDER BY position`,
} as const;
