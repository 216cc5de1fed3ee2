import { type CounterMove, idTakenError, type RowName } from "@tollgate/store-engine";
import { readRow, type SqlParameters, schemaVersion, writes } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { PostgresFailure } from "../database/failure.ts";
import { binaryArray } from "./binary-array.ts";
import { claimed, createCommit, patience } from "./commit-function.ts";
import { comparisons, groups, parameterOf, rowsParameter } from "./commit-groups.ts";
import type { Draft } from "./draft.ts";
import { byName } from "./lock-rows.ts";
import { type Columns, type ColumnType, tableColumns } from "./table-columns.ts";

/** What became of a change: written under its number, refused by a counter, or to be decided again. */
export type Outcome =
  | { readonly kind: "written"; readonly number: number }
  | { readonly kind: "stale" }
  | { readonly kind: "refused"; readonly move: CounterMove; readonly left: number };

/** Writes changes in one statement. Either all that are neither stale nor refused are written, or it throws. */
export interface Commit {
  /** The statement that makes its function. */
  readonly create: string;
  send(
    connection: Pick<Connection, "all">,
    drafts: readonly Draft[],
    wait: keyof typeof patience,
  ): Promise<readonly Outcome[]>;
}

/** What is sent together most, so that statements are few and none takes much that it does not need. */
const families: readonly (readonly string[])[] = [
  [
    ...["lockedSessions", "keys", "sessions", "budgets", "matches", "moves"],
    ...["step", "openStep", "session", "movedSession", "turn", "part", "decision", "hold", "leaf"],
  ],
  [
    ...["lockedSteps", "lockedSessions", "keptResponses", "sessions", "moves"],
    ...["endedStep", "closedStep", "movedSession", "response", "part", "error", "settledHold"],
    "leaf",
  ],
  ["relinkedResponse", "removedResponse", "leaf"],
  [...Object.keys(groups), ...Object.keys(writes)],
];

type NamedRow = readonly [name: string, row: SqlParameters];

/** An array of a statement: a column of the rows of a group or of a write. */
interface ArrayParameter {
  readonly parameter: string;
  readonly name: string;
  readonly column: string;
  readonly type: ColumnType;
}

interface Statement {
  readonly text: string;
  readonly arrays: readonly ArrayParameter[];
}

/** Its function's name carries the schema's version: two releases may work side by side while one replaces the other. */
export function commitIn(schema: string): Commit {
  const name = `${schema}.commit_v${schemaVersion}`;
  const tables = tableColumns();
  const kept = new Map<readonly string[], Statement>();
  const statementOf = (used: ReadonlySet<string>): Statement => {
    const family = families.find((names) => [...used].every((one) => names.includes(one)));
    if (!family) throw new TypeError("a change writes rows of no known kind");
    const statement = kept.get(family) ?? createStatement({ name, schema, tables }, family);
    kept.set(family, statement);
    return statement;
  };
  return {
    create: createCommit(name, schema),
    async send(connection, drafts, wait) {
      const rows = Map.groupBy(
        drafts.flatMap((draft) => draft.rows),
        ([group]) => group,
      );
      for (const { group } of comparisons) rows.get(group)?.sort(inOrder);
      const moved = rows.get("movedSession");
      if (moved) rows.set("movedSession", lastOfEach(moved));
      const { text, arrays } = statementOf(new Set(rows.keys()));
      const parameters: Record<string, Uint8Array | string | number> = {
        patience: patience[wait],
        groups: binaryArray(
          "BIGINT",
          drafts.map(({ group }) => group),
        ),
      };
      for (const { parameter, name: group, column, type } of arrays)
        parameters[parameter] = binaryArray(type, valuesOf(rows.get(group) ?? [], column));
      const moves = drafts.flatMap((draft) => draft.moves);
      const found = await connection.all(text, parameters).catch(refuseTakenId);
      return found.map((row) => outcomeOf(row, moves));
    },
  };
}

/** Every transaction locks rows in this order. */
function inOrder([, a]: NamedRow, [, b]: NamedRow): number {
  return byName(nameOf(a), nameOf(b));
}

/** Of Sessions that several changes write, the rows as the last of them leaves them. */
function lastOfEach(rows: readonly NamedRow[]): NamedRow[] {
  return rows.filter(([, row], at) => {
    const last = rows.findLastIndex(
      ([, other]) =>
        other["id"] === row["id"] && other["organization_id"] === row["organization_id"],
    );
    return last === at;
  });
}

function nameOf(row: SqlParameters): RowName {
  return { organizationId: String(row["organization_id"]), id: String(row["id"]) };
}

function valuesOf(rows: readonly NamedRow[], column: string): SqlParameters[string][] {
  return rows.map(([group, row]) => {
    const value = row[column];
    if (value === undefined) throw new TypeError(`a row of ${group} has no ${column}`);
    return value;
  });
}

function outcomeOf(row: unknown, moves: readonly CounterMove[]): Outcome {
  const read = readRow(row);
  if (read.integer("is_stale") === 1) return { kind: "stale" };
  const refused = read.integerOrNull("refused_move");
  if (refused === null) return { kind: "written", number: read.integer("number") };
  const move = moves[refused - 1];
  if (!move) throw new TypeError("the database refused what was not asked for");
  return { kind: "refused", move, left: read.integer("room_left") };
}

function refuseTakenId(error: unknown): never {
  if (error instanceof PostgresFailure && error.state === claimed.session)
    throw idTakenError("new Session");
  if (error instanceof PostgresFailure && error.state === claimed.response)
    throw idTakenError("stored response");
  throw error;
}

interface Schema {
  readonly name: string;
  readonly schema: string;
  readonly tables: ReadonlyMap<string, Columns>;
}

/** The call of the function with the rows of these groups and writes. */
function createStatement({ name, schema, tables }: Schema, family: readonly string[]): Statement {
  const arrays: ArrayParameter[] = [];
  const array = (group: string, column: string, type: ColumnType): string => {
    const parameter = parameterOf(group, column);
    arrays.push({ parameter, name: group, column, type });
    return `CAST(:${parameter} AS ${type}[])`;
  };
  const inputs = ["in_patience => :patience", "in_groups => CAST(:groups AS BIGINT[])"];
  for (const [group, { columns }] of Object.entries(groups)) {
    if (!family.includes(group)) continue;
    for (const [column, type] of Object.entries(columns))
      inputs.push(`in_${parameterOf(group, column)} => ${array(group, column, type)}`);
  }
  for (const [write, { table, columns }] of Object.entries(writes)) {
    if (!family.includes(write)) continue;
    const all = Object.entries(tables.get(table) ?? {});
    const written = all.filter(([column]) => columns.includes(column));
    const values = written.map(([column, type]) => array(write, column, type));
    const fields = all.map(([column]) => (columns.includes(column) ? `u.${column}` : "NULL"));
    const names = written.map(([column]) => column);
    inputs.push(
      `in_${parameterOf(write, "place")} => ${array(write, "place", "BIGINT")}`,
      `in_${rowsParameter(write)} => ARRAY(
        SELECT CAST(ROW(${fields.join(", ")}) AS ${schema}.${table})
        FROM unnest(${values.join(", ")}) AS u (${names.join(", ")}))`,
    );
  }
  return { text: `SELECT * FROM ${name}(${inputs.join(", ")})`, arrays };
}
