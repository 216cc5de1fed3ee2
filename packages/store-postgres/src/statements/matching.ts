/** How many of a key's most recently updated Sessions a request without ids may continue (section 3). */
const candidates = 100;

/** The last value of a chain stands for all before it, so comparing the head compares the history. */
const headAtLength = (session: string): string =>
  `${session}head = substr(CAST(:chain AS BYTEA), CAST(${session}length * 32 - 31 AS INTEGER), 32)`;

/** Which Session a request continues. */
export const matching = {
  recent: `SELECT id FROM (
      SELECT id, updated, length, in_flight, head FROM sessions
      WHERE organization_id = :organization_id AND key_id = :key_id AND source = :source
      ORDER BY updated DESC LIMIT ${candidates}) AS recent
    WHERE length BETWEEN 1 AND :length AND ${headAtLength("")}
      AND (in_flight = 0 OR length < :length)
    ORDER BY length DESC, updated DESC LIMIT 1`,
  descendants: `WITH RECURSIVE branch (id) AS (
      SELECT id FROM sessions
        WHERE organization_id = :organization_id AND branched_from_session_id = :id
      UNION ALL
      SELECT s.id FROM branch b JOIN sessions s
        ON s.organization_id = :organization_id AND s.branched_from_session_id = b.id)
    SELECT s.id FROM branch b JOIN sessions s
      ON s.organization_id = :organization_id AND s.id = b.id
    WHERE s.length BETWEEN 1 AND :length AND ${headAtLength("s.")}
    ORDER BY s.length DESC, s.updated DESC LIMIT 1`,
} as const;
