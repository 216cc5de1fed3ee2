import { keptExpiry } from "@tollgate/store-engine";
import { responseRows } from "../rows/response-row.ts";

const columns = responseRows.columns.join(", ");

/** A response that belongs to its owner and has not expired. */
const live = `organization_id = :organization_id AND id = :id
  AND user_id = :user_id AND key_id = :key_id AND expires_at > :at`;

/** Reads of stored responses. */
export const responseStatements = {
  get: `SELECT ${columns} FROM responses WHERE ${live}`,
  /**
   * A response and the responses it is built on, oldest first, in one snapshot. Joined in this order so that only the
   * chain is read.
   */
  history: `WITH RECURSIVE chain (id, built_on, distance) AS (
      SELECT id, built_on, 0 FROM responses WHERE ${live}
      UNION ALL
      SELECT r.id, r.built_on, link.distance + 1 FROM chain link CROSS JOIN responses r
        WHERE r.organization_id = :organization_id AND r.id = link.built_on)
    SELECT r.session_id, r.data_class, r.inherited, r.messages FROM chain link CROSS JOIN responses r
      WHERE r.organization_id = :organization_id AND r.id = link.id
    ORDER BY link.distance DESC`,
  /** A response without its content, expired or not. */
  response: `SELECT organization_id, user_id, key_id, step_id, expires_at, built_on, idempotency_key,
      length(messages) + length(inherited) AS kept_bytes FROM responses
    WHERE organization_id = :organization_id AND id = :id`,
  expired: `SELECT organization_id, id, built_on FROM responses WHERE expires_at > ${keptExpiry} AND expires_at <= :at
    ORDER BY expires_at, organization_id, id LIMIT :limit`,
  continuations: `SELECT id FROM responses
    WHERE organization_id = :organization_id AND built_on = :id LIMIT :limit`,
} as const;
