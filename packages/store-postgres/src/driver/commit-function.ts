import { type RowWrite, recentMatches, snakeCase, writes } from "@tollgate/store-sql";
import { checkedKinds, comparisons, createTypes, rowKinds, typeOf } from "./row-kinds.ts";

/**
 * Settings that make statements find rows by indexes, whatever the session's settings and statistics. Plans are generic: those
 * for Steps pick the partition when they run.
 */
export const byIndexes: readonly string[] = [
  "plan_cache_mode = force_generic_plan",
  // Plans with disabled nodes look expensive, and expensive plans would be compiled.
  "jit = off",
  // With a single partition, the planner ignores disabled nodes but not their cost.
  "seq_page_cost = 1e9",
  ...["seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort"].map((way) => `enable_${way} = off`),
];

/** How long a change waits for a lock when it runs alone. */
const lockTimeout = "1500ms";

/** How long changes wait for each lock. Together they wait less, so that few locks can't use up a statement's time. */
export function patienceOf(changes: number): string {
  return changes === 1 ? lockTimeout : `${Math.min(100, Math.floor(1_600 / changes))}ms`;
}

/** Counters stop at the largest number that JavaScript reads exactly. */
const maxAmount = Number.MAX_SAFE_INTEGER;

/**
 * Creates the schema's one function and the types of its rows. It writes changes, each whole or not at all, and knows no
 * rule. Changes of one group are written all or none. A change is stale if a row that it was decided on has changed, and
 * refused if a counter has too little room for it. Nothing is written of either. `release` is the server's.
 */
export function createCommit(name: string, schema: string, release: number): string {
  const inputs = [...rowKinds.keys()].map((kind) => `${inputOf(kind)} ${typeOf(name, kind)}[]`);
  const settings = [...byIndexes, `lock_timeout = '${lockTimeout}'`];
  return `${createTypes(name)};
    CREATE FUNCTION ${name} (in_patience TEXT, in_limited BOOLEAN, in_groups BIGINT[], ${inputs.join(", ")})
    RETURNS BIGINT[] LANGUAGE plpgsql ${settings.map((setting) => `SET ${setting} `).join("")}AS $body$
    #variable_conflict use_column
    DECLARE
      numbers BIGINT[] := '{}'; stale BIGINT[] := '{}'; skipped BIGINT[] := '{}';
      refused BIGINT[] := '{}'; unfit BIGINT[]; lefts BIGINT[]; paces BIGINT[] := '{}';
      has_paces BOOLEAN := FALSE; was_set TEXT; m RECORD; r RECORD;
    BEGIN
      -- Who commits together must not make one wait for what another of them has.
      was_set := set_config('lock_timeout', in_patience, TRUE);
      ${comparisons.map(compare).join("\n")}
      ${compareBudgets}
      ${compareMatches}
      ${compareUnclaimed}
      ${unlessNull("moves", `IF in_limited THEN IF ${mayLackRoom} THEN ${refuseWithoutRoom} ${waitForRoom} END IF; END IF;`)}
      IF cardinality(stale) > 0 OR cardinality(refused) > 0 THEN
        skipped := ARRAY(SELECT p.place FROM unnest(in_groups) WITH ORDINALITY AS p (of_group, place)
          WHERE p.of_group IN (SELECT in_groups[s.place] FROM unnest(stale || refused) AS s (place)));
      END IF;
      FOR place IN 1 .. cardinality(in_groups) LOOP
        numbers := numbers || nextval('${schema}.sequence');
      END LOOP;
      ${Object.entries(writes)
        .map(([write, row]) => writeRows(write, row, release))
        .join("\n")}
      was_set := set_config('lock_timeout', '${lockTimeout}', TRUE);
      ${moveCounters}
      IF cardinality(skipped) = 0 THEN
        RETURN numbers || paces;
      END IF;
      RETURN ARRAY(SELECT CASE WHEN p.place = ANY (refused) THEN -unfit[array_position(refused, p.place)]
          WHEN p.place = ANY (skipped) THEN 0 ELSE numbers[p.place] END
        FROM generate_subscripts(in_groups, 1) AS p (place) ORDER BY p.place) || lefts || paces;
    END $body$`;
}

/** The function's parameter for rows of a kind. Null if there are none. */
function inputOf(kind: string): string {
  return `in_${snakeCase(kind)}`;
}

function unlessNull(kind: string, statements: string): string {
  return `IF ${inputOf(kind)} IS NOT NULL THEN
      ${statements}
    END IF;`;
}

/** Finds changes that were decided on rows that have changed. Locks the rows in the given order. */
function compare({ kind, table, version, lock }: (typeof comparisons)[number]): string {
  return unlessNull(
    kind,
    `stale := stale || ARRAY(SELECT g.place FROM unnest(${inputOf(kind)}) AS g
        WHERE (SELECT ${version} FROM ${table} r
          WHERE r.organization_id = g.organization_id AND r.id = g.id ${lock}) IS DISTINCT FROM g.version);`,
  );
}

const compareBudgets = unlessNull(
  "budgets",
  `stale := stale || ARRAY(SELECT g.place FROM unnest(in_budgets) AS g
    WHERE g.version <> (SELECT s.budgets_version FROM store_state s WHERE s.id = 1));`,
);

/** Repeats the search for matches: it must find the same Sessions. */
const compareMatches = unlessNull(
  "matches",
  `stale := stale || ARRAY(SELECT g.place FROM unnest(in_matches) AS g
  WHERE g.found <> coalesce((
    SELECT string_agg(recent.id || ' ' || recent.updated, ',' ORDER BY recent.updated)
      FROM ${recentMatches((name) => (name === "length" ? "(octet_length(g.chain) / 32)" : `g.${name}`))}), ''));`,
);

const ofClaim = ["organization_id", "key_id", "endpoint", "idempotency_key"];

function isSameClaim(other: string): string {
  return ofClaim.map((column) => `${other}.${column} = g.${column}`).join(" AND ");
}

/** The idempotency keys that a change claims must be free. Of equal ones in a statement, only the first is. */
const compareUnclaimed = unlessNull(
  "unclaimed",
  `stale := stale || ARRAY(SELECT g.place FROM unnest(in_unclaimed) AS g
    WHERE EXISTS (SELECT FROM claims c WHERE ${isSameClaim("c")})
      OR EXISTS (SELECT FROM unnest(in_unclaimed) AS e WHERE e.place < g.place AND ${isSameClaim("e")}));`,
);

const countersOf = (move: string): string =>
  `LEFT JOIN budget_counters c ON c.budget_id = ${move}.budget_id AND c.subject = ${move}.subject
    AND c.period_start = ${move}.period_start`;

/** The amount that a counter has used before a move. */
const used = "greatest(coalesce(c.settled, 0), m.floor) + coalesce(c.held, 0)";

/**
 * Whether some change may find too little room. Takes no lock and looks at each counter once, so it costs little both
 * when every change fits and when a budget is used up. Only moving the counter decides.
 */
const mayLackRoom = `EXISTS (SELECT FROM (
      SELECT w.budget_id, w.subject, w.period_start, max(w.floor) AS floor, min(w.room) AS room,
          sum(greatest(w.settled + w.held, 0)) AS added
        FROM unnest(in_moves) AS w GROUP BY w.budget_id, w.subject, w.period_start) AS m
    ${countersOf("m")}
    WHERE ${used} + m.added > m.room)`;

/** Refuses changes that would not fit even alone. */
const refuseWithoutRoom = `SELECT coalesce(array_agg(f.place ORDER BY f.place), '{}'),
        array_agg(f.move ORDER BY f.place), array_agg(f.room_left ORDER BY f.place)
      INTO refused, unfit, lefts FROM (
        SELECT DISTINCT ON (m.place) m.place, m.move,
            -- A pace may be beyond its limit, and stays so for that long. NULL means without a limit.
            greatest(CASE WHEN m.floor = 0 THEN 0 END, m.room - (${used}) - m.settled - m.held + m.taken) AS room_left
          FROM unnest(in_moves) WITH ORDINALITY
            AS m (${["place", ...Object.keys(checkedKinds.moves), "move"].join(", ")})
          ${countersOf("m")}
          WHERE m.place <> ALL (stale) AND ${used} + m.settled + m.held > m.room
          ORDER BY m.place, m.move) AS f;`;

/**
 * Changes that fit alone but not together: the later ones are decided again, on the counters that the earlier ones
 * leave. A counter is moved once for all changes, so they must fit under the lowest limit, even from the latest floor.
 */
const waitForRoom = `IF cardinality(in_groups) > 1 THEN
      stale := stale || ARRAY(SELECT DISTINCT f.place FROM (
        SELECT m.place, min(m.room) OVER earlier AS room,
            greatest(coalesce(c.settled, 0), max(m.floor) OVER earlier) + coalesce(c.held, 0)
              + sum(m.settled + m.held) OVER earlier AS reached
          FROM unnest(in_moves) AS m
          ${countersOf("m")}
          WHERE m.place <> ALL (stale || refused)
          WINDOW earlier AS (PARTITION BY m.budget_id, m.subject, m.period_start ORDER BY m.place)) AS f
        WHERE f.reached > f.room);
    END IF;`;

/** From this release on, one search of an index takes an array for each of its columns. */
const searchesArrays = 17;

/** Writes rows of one kind, except those of skipped changes. */
function writeRows(name: string, write: RowWrite, release: number): string {
  const rows = `unnest(${inputOf(name)}) AS r`;
  const counts = "r.place <> ALL (skipped)";
  if (write.kind !== "update" && write.kind !== "remove")
    return unlessNull(name, `${insertText(write, rows, counts)};`);
  if (release < searchesArrays) {
    const found = write.key.map((column) => `t.${column} = r.${column}`);
    const each = `FOR r IN SELECT r.* FROM ${rows} WHERE ${counts} LOOP`;
    return unlessNull(name, `${each} ${changeText(write, "", found)}; END LOOP;`);
  }
  // With plain equality, a plan may read the whole table first, which looks cheap while it has few rows.
  const found = write.key.map((column) => `t.${column} = ANY (ARRAY[r.${column}])`);
  return unlessNull(name, `${changeText(write, rows, [...found, counts])};`);
}

function insertText(write: RowWrite, rows: string, counts: string): string {
  const { kind, table, key, columns } = write;
  const inserted = `INSERT INTO ${table} (${columns.join(", ")})
    SELECT ${columns.map((column) => valueFor(write, column)).join(", ")} FROM ${rows} WHERE ${counts}`;
  if (kind === "note") return `${inserted} ON CONFLICT DO NOTHING`;
  if (kind !== "set") return inserted;
  const changed = columns.filter((column) => !key.includes(column));
  return `${inserted} ON CONFLICT (${key.join(", ")})
    DO UPDATE SET ${changed.map((column) => `${column} = excluded.${column}`).join(", ")}`;
}

/** Updates or removes what matches `r`: each of the given rows, or the row of a loop. */
function changeText(write: RowWrite, rows: string, conditions: readonly string[]): string {
  const { kind, table, key, columns } = write;
  const where = `WHERE ${conditions.join(" AND ")}`;
  if (kind === "remove") return `DELETE FROM ${table} AS t ${rows && `USING ${rows}`} ${where}`;
  const assigned = columns
    .filter((column) => !key.includes(column))
    .map((column) => `${column} = ${valueFor(write, column)}`);
  return `UPDATE ${table} AS t SET ${assigned.join(", ")} ${rows && `FROM ${rows}`} ${where}`;
}

function valueFor({ numbered }: RowWrite, column: string): string {
  return column === numbered ? `numbers[r.${column}]` : `r.${column}`;
}

/** Moves each counter once for all changes, in a fixed order. The write itself checks the limit on the current row. */
const moveCounters = unlessNull(
  "moves",
  `FOR m IN SELECT w.budget_id, w.subject, w.period_start, min(w.unit) AS unit,
      max(w.floor) AS floor, CAST(sum(w.settled) AS BIGINT) AS settled, CAST(sum(w.held) AS BIGINT) AS held, min(w.room) AS room
    FROM unnest(in_moves) AS w WHERE w.place <> ALL (skipped)
    GROUP BY w.budget_id, w.subject, w.period_start
    ORDER BY w.budget_id COLLATE "C", w.subject COLLATE "C", w.period_start
  LOOP
    INSERT INTO budget_counters AS c (budget_id, subject, period_start, unit, settled, held)
      SELECT m.budget_id, m.subject, m.period_start, m.unit,
          least(greatest(m.floor + m.settled, 0), ${maxAmount}), greatest(m.held, 0)
        WHERE m.room IS NULL OR m.floor + m.settled + m.held <= m.room
      ON CONFLICT (budget_id, subject, period_start) DO UPDATE
        SET settled = least(greatest(greatest(c.settled, m.floor) + m.settled, 0), ${maxAmount}),
          held = c.held + m.held
        WHERE m.room IS NULL
          OR greatest(c.settled, m.floor) + m.settled + c.held + m.held <= m.room;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'a budget was used up meanwhile' USING ERRCODE = '40001';
    END IF;
    has_paces := has_paces OR m.floor > 0;
  END LOOP;
  IF has_paces THEN
    paces := ARRAY(SELECT (SELECT c.settled FROM budget_counters c WHERE c.budget_id = w.budget_id
          AND c.subject = w.subject AND c.period_start = w.period_start)
      FROM unnest(in_moves) WITH ORDINALITY AS w
      WHERE w.floor > 0 AND w.place <> ALL (skipped) ORDER BY w.ordinality);
  END IF;`,
);
