import { decisionColumns } from "../rows/decision-row.ts";
import { leafColumns } from "../rows/leaf-row.ts";
import { sessionColumns } from "../rows/session-row.ts";
import { stepColumns } from "../rows/step-row.ts";
import { insertInto } from "../statement.ts";

/** How many of a key's most recently updated Sessions a request without ids may continue (section 3). */
const candidates = 100;

const session = sessionColumns.join(", ");

/** What opening a Step reads and writes. */
export const opening = {
  knownStep: `SELECT session_id, turn_id, branched_from_session_id FROM steps
    WHERE organization_id = :organization_id AND id = :id`,
  key: `SELECT user_id, label, expires_at, revoked_at, version FROM api_keys
    WHERE organization_id = :organization_id AND id = :key_id`,
  session: `SELECT ${session} FROM sessions WHERE organization_id = :organization_id AND id = :id`,
  sessionOfTurn: `SELECT ${sessionColumns.map((column) => `s.${column}`).join(", ")}
    FROM turns t JOIN sessions s ON s.organization_id = t.organization_id AND s.id = t.session_id
    WHERE t.organization_id = :organization_id AND t.id = :id`,
  /** The last value of a chain stands for all before it, so comparing the head compares the history. */
  matchingSession: `SELECT id FROM (
      SELECT id, updated, length, in_flight, head FROM sessions
      WHERE organization_id = :organization_id AND key_id = :key_id AND source = :source
      ORDER BY updated DESC LIMIT ${candidates}) AS recent
    WHERE length BETWEEN 1 AND :length AND head = substr(:chain, length * 32 - 31, 32)
      AND (in_flight = 0 OR length < :length)
    ORDER BY length DESC, updated DESC LIMIT 1`,
  /** Joined in this order, so that nothing but the branches is read. */
  descendants: `WITH RECURSIVE branch (id) AS (
      SELECT id FROM sessions
        WHERE organization_id = :organization_id AND branched_from_session_id = :id
      UNION ALL
      SELECT s.id FROM branch b CROSS JOIN sessions s
        WHERE s.organization_id = :organization_id AND s.branched_from_session_id = b.id)
    SELECT s.id FROM branch b CROSS JOIN sessions s
    WHERE s.organization_id = :organization_id AND s.id = b.id AND s.length BETWEEN 1 AND :length AND s.head = substr(:chain, s.length * 32 - 31, 32)
    ORDER BY s.length DESC, s.updated DESC LIMIT 1`,
  insertSession: `${insertInto("sessions", sessionColumns)} ON CONFLICT DO NOTHING`,
  extendSession: `UPDATE sessions SET head = :head, length = :length, updated = :updated,
      updated_at = :updated_at, in_flight = :in_flight, turn_id = :turn_id,
      data_classes = :data_classes
    WHERE organization_id = :organization_id AND id = :id`,
  insertTurn: `${insertInto("turns", ["organization_id", "id", "session_id"])}
    ON CONFLICT DO NOTHING`,
  insertPart: insertInto("transcript_parts", [
    "organization_id",
    "session_id",
    "position",
    "step_id",
    "kind",
    "count",
    "chain",
    "content",
    "salt",
    "commitment",
  ]),
  insertDecision: `${insertInto("decisions", decisionColumns)} ON CONFLICT DO NOTHING`,
  insertStep: insertInto("steps", stepColumns),
  insertOpenStep: insertInto("open_steps", [
    "process_id",
    "step_id",
    "organization_id",
    "renewal",
    "output_tokens",
  ]),
  insertLeaf: insertInto("leaves", leafColumns),
} as const;
