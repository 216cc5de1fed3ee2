import { listed } from "../index-conditions.ts";
import { sessionColumns } from "../rows/session-row.ts";

/** Statements that remove Steps past their retention from the given table. */
export function retentionStatements(table: string) {
  const due = `${listed.steps} AND opened_at < :before AND outcome <> 'open'`;
  return {
    /**
     * A page of organizations, each with the time of its oldest old settled Step, which an index finds. An open Step does not
     * hold up the others.
     */
    organizations: `SELECT o.id, (SELECT t.opened_at FROM ${table} t
        WHERE t.organization_id = o.id AND ${due} ORDER BY t.opened_at, t.sequence LIMIT 1) AS oldest
      FROM organizations o WHERE o.id >= :from ORDER BY o.id LIMIT :limit`,
    ids: `SELECT id FROM ${table} WHERE organization_id = :organization_id AND ${due}
      ORDER BY opened_at, sequence LIMIT :limit`,
    removeOne: `DELETE FROM ${table} WHERE organization_id = :organization_id AND id = :id`,
  } as const;
}

/** An erased row has neither. A salt comes after its content, so it is read only if there is no content. */
const isHeld = "(content IS NOT NULL OR length(salt) > 0)";

/** The error texts of a Session, found by its own index: the primary key would scan the whole organization. */
const ofSession = `(step_id, attempt) IN (SELECT step_id, attempt FROM attempt_errors
  WHERE organization_id = :organization_id AND session_id = :id)`;

/** Statements that erase transcripts past their retention. */
export const erasureStatements = {
  /** A page of organizations, each with its longest-unused Session after the mark up to which all were checked. */
  organizationsOfOldSessions: `SELECT o.id, coalesce(e.updated, -1) AS mark, (SELECT s.updated_at
      FROM sessions s WHERE s.organization_id = o.id AND s.${listed.sessions}
        AND s.updated > coalesce(e.updated, -1) ORDER BY s.updated LIMIT 1) AS oldest
    FROM organizations o LEFT JOIN erasures e ON e.organization_id = o.id
    WHERE o.id >= :from ORDER BY o.id LIMIT :limit`,
  sessionsInOrder: `SELECT ${sessionColumns.join(", ")} FROM sessions
    WHERE organization_id = :organization_id AND ${listed.sessions} AND updated > :mark
    ORDER BY updated LIMIT :limit`,
  /** A Session in use that directly continues a Session's history. Looked up first, because it reads one row. */
  neededDirectly: `SELECT id FROM sessions WHERE organization_id = :organization_id
    AND history_from_session_id = :id AND updated_at >= :before LIMIT 1`,
  /** Joined in this order so that only those Sessions are read. */
  neededSince: `WITH RECURSIVE heir (id, updated_at) AS (
      SELECT id, updated_at FROM sessions
        WHERE organization_id = :organization_id AND history_from_session_id = :id
      UNION ALL
      SELECT s.id, s.updated_at FROM heir h CROSS JOIN sessions s
        WHERE s.organization_id = :organization_id AND s.history_from_session_id = h.id)
    SELECT id FROM heir WHERE updated_at >= :before LIMIT 1`,
  /** The names and sizes of parts that aren't erased. The length of bytes is read without them. */
  heldParts: `SELECT step_id, position AS place, coalesce(length(content), 0) AS bytes
    FROM transcript_parts WHERE organization_id = :organization_id AND session_id = :id AND ${isHeld}
    ORDER BY position, step_id LIMIT :limit`,
  /** The same of error texts. */
  heldErrors: `SELECT step_id, attempt AS place, coalesce(length(content), 0) AS bytes
    FROM attempt_errors WHERE organization_id = :organization_id AND ${isHeld} AND ${ofSession}
    ORDER BY step_id, attempt LIMIT :limit`,
} as const;
