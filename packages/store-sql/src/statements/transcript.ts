import { positionsBeside } from "../rows/part-row.ts";

/** One row of an organization by its id. */
export function selectById(table: string, columns: readonly string[]): string {
  return `SELECT ${columns.join(", ")} FROM ${table}
    WHERE organization_id = :organization_id AND id = :id`;
}

/** A page of organizations. `found` is null if the table has no row of the organization with this id. */
export function selectOwners(table: string): string {
  return `SELECT o.id, (SELECT r.id FROM ${table} r WHERE r.organization_id = o.id AND r.id = :id) AS found
    FROM organizations o WHERE o.id > :after ORDER BY o.id LIMIT :limit`;
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
