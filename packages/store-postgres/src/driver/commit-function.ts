import { type RowWrite, recentMatches, writes } from "@tollgate/store-sql";
import { comparisons, groups, parameterOf, rowsParameter } from "./commit-groups.ts";

/**
 * How statements find rows, whatever the session's settings and statistics: by the indexes. A plan is never made for one
 * call, so that those for Steps find the partition when they run.
 */
export const byIndexes: readonly string[] = [
  "plan_cache_mode = force_generic_plan",
  // What is turned off counts as dear, and what is dear would be compiled.
  "jit = off",
  ...["seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort"].map((way) => `enable_${way} = off`),
];

/** How long one waits for a lock. */
export const patience = { alone: "1500ms", together: "100ms" } as const;

/** What a commit raises where a row is there that is claimed. */
export const claimed = { tryAgain: "TG001", session: "TG002", response: "TG003" } as const;

/** Counters are as exact as the numbers of those who read them. */
const most = Number.MAX_SAFE_INTEGER;

/**
 * The statement that makes the one function of this schema: it writes the changes that it is given, each whole or not at
 * all, and knows no rule. Changes of one group depend on each other: all of them are written or none. A change that was decided on rows that are no longer so is stale, and one that takes more of a
 * counter than it has room for is refused: nothing is written of it.
 */
export function createCommit(name: string, schema: string): string {
  const list = [
    "in_patience TEXT",
    "in_groups BIGINT[]",
    ...Object.entries(groups).flatMap(([group, { columns }]) =>
      Object.entries(columns).map(
        ([column, type]) => `in_${parameterOf(group, column)} ${type}[] DEFAULT '{}'`,
      ),
    ),
    ...Object.entries(writes).flatMap(([write, { table }]) => [
      `in_${parameterOf(write, "place")} BIGINT[] DEFAULT '{}'`,
      `in_${rowsParameter(write)} ${schema}.${table}[] DEFAULT '{}'`,
    ]),
  ];
  const settings = [...byIndexes, `lock_timeout = '${patience.alone}'`];
  return `CREATE OR REPLACE FUNCTION ${name} (${list.join(", ")})
    RETURNS TABLE (number BIGINT, is_stale BIGINT, refused_move BIGINT, room_left BIGINT)
    LANGUAGE plpgsql ${settings.map((setting) => `SET ${setting} `).join("")}AS $body$
    #variable_conflict use_column
    DECLARE
      numbers BIGINT[]; stale BIGINT[] := '{}'; skipped BIGINT[]; written BIGINT;
      refused BIGINT[]; unfit BIGINT[]; lefts BIGINT[]; m RECORD; r RECORD;
    BEGIN
      -- Who commits together must not make one wait for what another of them has.
      PERFORM set_config('lock_timeout', in_patience, TRUE);
      ${comparisons.map(compare).join("\n")}
      ${compareBudgets}
      ${compareMatches}
      ${refuseWithoutRoom}
      IF cardinality(in_groups) > 1 THEN ${waitForRoom} END IF;
      skipped := ARRAY(SELECT p.place FROM unnest(in_groups) WITH ORDINALITY AS p (of_group, place)
        WHERE p.of_group IN (SELECT in_groups[s.place] FROM unnest(stale || refused) AS s (place)));
      numbers := ARRAY(SELECT nextval('${schema}.sequence') FROM unnest(in_groups));
      ${Object.entries(writes)
        .map(([write, row]) => writeRows(write, row))
        .join("\n")}
      PERFORM set_config('lock_timeout', '${patience.alone}', TRUE);
      ${moveCounters}
      RETURN QUERY SELECT numbers[p.place],
          CASE WHEN p.place = ANY (skipped) AND p.place <> ALL (refused) THEN 1::BIGINT ELSE 0 END,
          unfit[array_position(refused, p.place)], lefts[array_position(refused, p.place)]
        FROM generate_subscripts(in_groups, 1) AS p (place) ORDER BY p.place;
    END $body$`;
}

/** The rows of a group, by this name. */
function rowsOf(group: keyof typeof groups, as: string, ordinality = ""): string {
  const columns = Object.keys(groups[group].columns);
  const arrays = columns.map((column) => `in_${parameterOf(group, column)}`);
  const names = ordinality === "" ? columns : [...columns, ordinality];
  const numbered = ordinality === "" ? "" : " WITH ORDINALITY";
  return `unnest(${arrays.join(", ")})${numbered} AS ${as} (${names.join(", ")})`;
}

/** What was decided on rows that are not as they were is stale; they are locked in the order that they are given in. */
function compare({ group, table, version, lock }: (typeof comparisons)[number]): string {
  return `IF cardinality(in_${parameterOf(group, "place")}) > 0 THEN
      stale := stale || ARRAY(SELECT g.place FROM ${rowsOf(group, "g")}
        WHERE (SELECT ${version} FROM ${table} r
          WHERE r.organization_id = g.organization_id AND r.id = g.id ${lock}) IS DISTINCT FROM g.version);
    END IF;`;
}

const compareBudgets = `stale := stale || ARRAY(SELECT g.place FROM ${rowsOf("budgets", "g")}
  WHERE g.version <> (SELECT s.budgets_version FROM store_state s WHERE s.id = 1));`;

/** What guards a match is the match itself: it would be the same now. */
const compareMatches = `stale := stale || ARRAY(SELECT g.place FROM ${rowsOf("matches", "g")}
  WHERE g.found <> coalesce((
    SELECT string_agg(recent.id || ' ' || recent.updated, ',' ORDER BY recent.updated)
      FROM ${recentMatches((name) => (name === "length" ? "(octet_length(g.chain) / 32)" : `g.${name}`))}), ''));`;

/** Looks without a lock, so that asking for what is long used up costs little; moving the counter is what decides. */
const refuseWithoutRoom = `SELECT coalesce(array_agg(f.place), '{}'), array_agg(f.move), array_agg(f.room_left)
    INTO refused, unfit, lefts FROM (
      SELECT DISTINCT ON (m.place) m.place, m.move,
          greatest(0, m.room - greatest(coalesce(c.settled, 0), m.floor) - coalesce(c.held, 0)
            - m.settled - m.held + m.taken) AS room_left
        FROM ${rowsOf("moves", "m", "move")}
        LEFT JOIN budget_counters c ON c.budget_id = m.budget_id AND c.subject = m.subject
          AND c.period_start = m.period_start
        WHERE m.place <> ALL (stale)
          AND greatest(coalesce(c.settled, 0), m.floor) + coalesce(c.held, 0)
            + m.settled + m.held > m.room
        ORDER BY m.place, m.move) AS f;`;

/** Changes that fit alone and not together: those that come later are decided again, on what the earlier ones leave. */
const waitForRoom = `stale := stale || ARRAY(SELECT DISTINCT f.place FROM (
    SELECT m.place, m.room, greatest(coalesce(c.settled, 0), m.floor) + coalesce(c.held, 0)
        + sum(m.settled + m.held) OVER (PARTITION BY m.budget_id, m.subject, m.period_start ORDER BY m.place) AS reached
      FROM ${rowsOf("moves", "m")}
      LEFT JOIN budget_counters c ON c.budget_id = m.budget_id AND c.subject = m.subject
        AND c.period_start = m.period_start
      WHERE m.place <> ALL (stale || refused)) AS f
    WHERE f.reached > f.room);`;

/** Writes rows of one kind, but for those of changes that are skipped. */
function writeRows(name: string, write: RowWrite): string {
  const places = `in_${parameterOf(name, "place")}`;
  const rows = `unnest(in_${rowsParameter(name)}) WITH ORDINALITY AS r`;
  const counts = `${places}[r.ordinality] <> ALL (skipped)`;
  return `IF cardinality(${places}) > 0 THEN
      ${writeText(write, rows, counts)};
      ${write.kind === "claim" ? requireClaimed(write, places) : ""}
    END IF;`;
}

function writeText(
  { kind, table, key, columns, numbered }: RowWrite,
  rows: string,
  counts: string,
) {
  const valueFor = (column: string): string =>
    column === numbered ? `numbers[r.${column}]` : `r.${column}`;
  const found = key.map((column) => `t.${column} = r.${column}`).join(" AND ");
  const changed = columns.filter((column) => !key.includes(column));
  const assigned = changed.map((column) => `${column} = ${valueFor(column)}`).join(", ");
  /** One by one: joined, the planner might read the whole table first where it takes it to be small. */
  const eachRow = (statement: string): string => `FOR r IN SELECT * FROM ${rows} WHERE ${counts}
      LOOP ${statement}; END LOOP`;
  const inserted = `INSERT INTO ${table} (${columns.join(", ")})
    SELECT ${columns.map(valueFor).join(", ")} FROM ${rows} WHERE ${counts}`;
  switch (kind) {
    case "insert":
      return inserted;
    case "claim":
    case "note":
      return `${inserted} ON CONFLICT DO NOTHING`;
    case "set":
      return `${inserted} ON CONFLICT (${key.join(", ")})
        DO UPDATE SET ${changed.map((column) => `${column} = excluded.${column}`).join(", ")}`;
    case "update":
      return eachRow(`UPDATE ${table} AS t SET ${assigned} WHERE ${found}`);
    case "remove":
      return eachRow(`DELETE FROM ${table} AS t WHERE ${found}`);
  }
}

function requireClaimed({ table }: RowWrite, places: string): string {
  const state =
    table === "sessions"
      ? claimed.session
      : table === "responses"
        ? claimed.response
        : claimed.tryAgain;
  return `GET DIAGNOSTICS written = ROW_COUNT;
      IF written < (SELECT count(*) FROM unnest(${places}) AS p (place) WHERE p.place <> ALL (skipped)) THEN
        RAISE EXCEPTION 'a row of ${table} was there before' USING ERRCODE = '${state}';
      END IF;`;
}

/** Each counter once, however many changes move it, in one order; the write itself checks, on the row as it is then. */
const moveCounters = `FOR m IN SELECT w.budget_id, w.subject, w.period_start, min(w.unit) AS unit,
      max(w.floor) AS floor, CAST(sum(w.settled) AS BIGINT) AS settled, CAST(sum(w.held) AS BIGINT) AS held, min(w.room) AS room
    FROM ${rowsOf("moves", "w")} WHERE w.place <> ALL (skipped)
    GROUP BY w.budget_id, w.subject, w.period_start
    ORDER BY w.budget_id COLLATE "C", w.subject COLLATE "C", w.period_start
  LOOP
    INSERT INTO budget_counters AS c (budget_id, subject, period_start, unit, settled, held)
      SELECT m.budget_id, m.subject, m.period_start, m.unit,
          least(greatest(m.floor + m.settled, 0), ${most}), greatest(m.held, 0)
        WHERE m.room IS NULL OR m.floor + m.settled + m.held <= m.room
      ON CONFLICT (budget_id, subject, period_start) DO UPDATE
        SET settled = least(greatest(greatest(c.settled, m.floor) + m.settled, 0), ${most}),
          held = c.held + m.held
        WHERE m.room IS NULL
          OR greatest(c.settled, m.floor) + m.settled + c.held + m.held <= m.room;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'a budget was used up meanwhile' USING ERRCODE = '40001';
    END IF;
  END LOOP;`;
