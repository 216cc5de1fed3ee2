/** Up to `limit` organizations that have rows in a table, each found by one look into its index. */
function organizationsIn(table: string, isFirst: boolean, name = "logs"): string {
  const after = isFirst ? "" : "WHERE organization_id > :after";
  return `${name} (id, place) AS (
    SELECT min(organization_id), 1 FROM ${table} ${after}
    UNION ALL
    SELECT (SELECT min(organization_id) FROM ${table} WHERE organization_id > ${name}.id), ${name}.place + 1
    FROM ${name} WHERE ${name}.id IS NOT NULL AND ${name}.place < :limit)`;
}

const ofLog = "organization_id = :organization_id";

const lastOf = (log: string, columns: string): string =>
  `SELECT ${columns} FROM checkpoints WHERE organization_id = ${log} ORDER BY number DESC LIMIT 1`;

/** The leaves of a log that are not sealed. Those up to `settled` all are. */
const notSealed = (log: string, settled: string): string =>
  `FROM leaves l WHERE l.organization_id = ${log} AND l.sequence > ${settled} AND NOT EXISTS (
    SELECT 1 FROM sealed_leaves s WHERE s.organization_id = l.organization_id AND s.sequence = l.sequence)
  ORDER BY l.sequence`;

const settledIn = (log: string): string => `coalesce((${lastOf(log, "settled")}), -1)`;

/** Logs with the time of the first leaf that no signed checkpoint covers; null if there is none. */
const unsealed = (isFirst: boolean): string => `WITH RECURSIVE ${organizationsIn("leaves", isFirst)}
  SELECT logs.id AS id, coalesce(
    (${lastOf("logs.id", "CASE WHEN note IS NULL THEN since END")}),
    (SELECT l.at ${notSealed("logs.id", settledIn("logs.id"))} LIMIT 1)) AS since
  FROM logs WHERE logs.id IS NOT NULL ORDER BY logs.id`;

/** From both tables, because a log may have lost all its leaves or may not have begun. */
const organizations = (isFirst: boolean): string => `WITH RECURSIVE
  ${organizationsIn("leaves", isFirst)}, ${organizationsIn("checkpoints", isFirst, "begun")}
  SELECT owners.id AS id, (${lastOf("owners.id", "at")}) AS sealed_at FROM (
    SELECT id FROM logs WHERE id IS NOT NULL UNION SELECT id FROM begun WHERE id IS NOT NULL) AS owners
  ORDER BY owners.id LIMIT :limit`;

/** Leaves without an index below a log's size that were written before or after the times in which they may wait. */
const outside = (isFirst: boolean): string => `SELECT
    count(*) AS looked, max(place) AS last, count(late) AS outside, min(late) AS since FROM (
    SELECT l.sequence AS place, CASE WHEN (s.number IS NULL OR s.number < 0 OR s.number >= :size)
      AND (l.at < :from_time OR l.at > :to_time) THEN l.at END AS late
    FROM leaves l LEFT JOIN sealed_leaves s
    ON s.organization_id = l.organization_id AND s.sequence = l.sequence
    WHERE l.organization_id = :organization_id ${isFirst ? "" : "AND l.sequence > :after"}
    ORDER BY l.sequence LIMIT :limit) AS leaf_places`;

/** The statements of logs and their checkpoints. `after` is missing from the first page's. */
export const checkpointStatements = {
  firstUnsealed: unsealed(true),
  unsealed: unsealed(false),
  firstOrganizations: organizations(true),
  organizations: organizations(false),
  last: lastOf(":organization_id", "organization_id, number, size, frontier, at, note"),
  settled: lastOf(":organization_id", "settled"),
  next: `SELECT l.sequence, l.at, l.hash ${notSealed(":organization_id", ":settled")} LIMIT :limit`,
  firstOutside: outside(true),
  outside: outside(false),
  add: `INSERT INTO checkpoints (organization_id, number, size, frontier, at, note, settled, since)
    VALUES (:organization_id, :number, :size, :frontier, :at, NULL, :settled, :since)
    ON CONFLICT DO NOTHING`,
  sign: `UPDATE checkpoints SET note = :note WHERE ${ofLog} AND number = :number AND note IS NULL`,
} as const;
