import { continued } from "../index-conditions.ts";
import { sessionColumns } from "../rows/session-row.ts";

/** How many of a key's most recently updated Sessions a request without ids may continue (section 3). */
export const maxCandidates = 100;

const session = sessionColumns.join(", ");
const ofSession = sessionColumns.map((column) => `s.${column}`).join(", ");

/**
 * Whether a request's history begins with a Session's history. One comparison is enough, because the last value of a
 * chain depends on all earlier ones. PostgreSQL infers the type of a parameter from the text next to it.
 */
function isBegunBy(row: string, given: (name: "chain" | "length") => string): string {
  return `${row}.length BETWEEN 1 AND ${given("length")}
    AND ${row}.head = substr(coalesce(${given("chain")}, ${row}.head), CAST(${row}.length * 32 - 31 AS INTEGER), 32)`;
}

/** A parameter of the search for matches. */
type MatchParameter = "organization_id" | "key_id" | "source" | "chain" | "length";

/**
 * A FROM clause that ends with a condition: those of a key's most recently updated Sessions that a history begins with.
 * It leaves out Sessions in flight of the same length: concurrent equal requests would each read all that the others
 * began, and none of them continues one.
 */
export function recentMatches(given: (name: MatchParameter) => string, joined = ""): string {
  return `(SELECT id, updated, length, in_flight, head FROM sessions
      WHERE organization_id = ${given("organization_id")} AND key_id = ${given("key_id")}
        AND source = ${given("source")} AND ${continued}
      ORDER BY updated DESC LIMIT ${maxCandidates}) AS recent ${joined}
    WHERE ${isBegunBy("recent", given)}
      AND (recent.in_flight = 0 OR recent.length < ${given("length")})`;
}

const named = (name: MatchParameter): string => `:${name}`;

/** The statements that opening a Step runs. */
export const openStepStatements = {
  key: `SELECT user_id, label, expires_at, revoked_at, version FROM api_keys
    WHERE organization_id = :organization_id AND id = :id`,
  session: `SELECT ${session} FROM sessions WHERE organization_id = :organization_id AND id = :id`,
  sessionOfTurn: `SELECT ${session} FROM sessions WHERE organization_id = :organization_id
    AND id = (SELECT session_id FROM turns WHERE organization_id = :organization_id AND id = :id)`,
  recent: `SELECT ${session} FROM sessions
    WHERE organization_id = :organization_id AND key_id = :key_id AND source = :source AND ${continued}
    ORDER BY updated DESC LIMIT ${maxCandidates}`,
  /** Joined in this order so that only the matching candidates are read. */
  recentMatches: `SELECT ${ofSession} FROM ${recentMatches(named, "CROSS JOIN sessions s")}
      AND s.organization_id = :organization_id AND s.id = recent.id`,
  /**
   * Looks for each value of the chain, so that the other branches of the tree are not read, however many there are. The
   * root's own head only gives the values their type.
   */
  matchingBranches: `WITH RECURSIVE message (position, value) AS (
      SELECT 0, head FROM sessions WHERE organization_id = :organization_id AND id = :root_session_id
      UNION ALL
      SELECT position + 1, substr(coalesce(:chain, value), CAST(position * 32 + 1 AS INTEGER), 32)
        FROM message WHERE position < :length)
    SELECT ${ofSession} FROM message m CROSS JOIN sessions s
    WHERE m.position > 0 AND s.organization_id = :organization_id AND s.head = m.value
      AND s.root_session_id = :root_session_id
    ORDER BY s.length DESC, s.updated DESC LIMIT ${maxCandidates}`,
  hasDecision: "SELECT id FROM decisions WHERE organization_id = :organization_id AND id = :id",
} as const;
