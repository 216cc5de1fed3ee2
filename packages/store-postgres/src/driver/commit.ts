import { type CounterMove, idTakenError, type RowName } from "@tollgate/store-engine";
import { readRow, type SqlParameters, schemaVersion, snakeCase } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { PostgresFailure, uniqueViolation } from "../database/failure.ts";
import { attempt, type Task } from "../database/task.ts";
import { binaryIntegers, binaryRows, type PlacedRow, type RowType } from "./binary-rows.ts";
import { createCommit, patienceOf } from "./commit-function.ts";
import type { Draft } from "./draft.ts";
import { byName } from "./lock-rows.ts";
import { comparisons, rowKinds, typeOf } from "./row-kinds.ts";

/** The outcome of a change: written under its number, refused by a counter, or stale. */
export type Outcome =
  | { readonly kind: "written"; readonly number: number; readonly paces: readonly number[] }
  | { readonly kind: "stale" }
  | { readonly kind: "refused"; readonly move: CounterMove; readonly left: number };

/** Writes changes in one statement: all that are neither stale nor refused, or it throws. */
export interface Commit {
  /** The statements that create its function and types. */
  create(release: number): string;
  send(
    connection: Pick<Connection, "all" | "rows">,
    drafts: readonly Draft[],
  ): Task<readonly Outcome[]>;
}

/** The statement that calls the function, and the ids of its composite types in this database. */
interface Call {
  readonly text: string;
  readonly types: ReadonlyMap<string, ParameterType>;
}

/** The type of a parameter, and its name. */
interface ParameterType extends RowType {
  readonly parameter: string;
}

/** The function's name contains the schema's version, so two releases can run side by side during an upgrade. */
export function commitIn(schema: string): Commit {
  const name = `commit_v${schemaVersion}`;
  let call: Call | null = null;
  return {
    create: (release) => createCommit(`${schema}.${name}`, schema, release),
    send: (connection, drafts) => (receiver) => {
      const write = ({ text, types }: Call): void => {
        const moves = drafts.flatMap((draft) => draft.moves);
        const writing = connection.rows(text, parametersOf(types, drafts, moves));
        writing({
          resolve([found]) {
            receiver.resolve(outcomesOf(readRow(found).text("outcomes"), drafts, moves));
          },
          reject(error) {
            if (!isOfOtherTypes(error)) return receiver.reject(takenIdOr(error));
            call = null;
            receiver.reject(new PostgresFailure(error.message, { isPassing: true }, error.state));
          },
        });
      };
      if (call) return write(call);
      void readCall(connection, schema, name).then((read) => {
        call = read;
        attempt(() => write(read), receiver);
      }, receiver.reject);
    },
  };
}

/** Whether the types have new ids because the schema was created again, as when a backup is restored. */
function isOfOtherTypes(error: unknown): error is PostgresFailure {
  return (
    error instanceof PostgresFailure && ["XX000", "42704", "42804"].includes(error.state ?? "")
  );
}

async function readCall(
  connection: Pick<Connection, "all">,
  schema: string,
  name: string,
): Promise<Call> {
  const rows = await connection.all(
    `SELECT typname AS name, CAST(oid AS BIGINT) AS id FROM pg_type
      WHERE typnamespace = CAST(:schema AS REGNAMESPACE) AND starts_with(typname, :prefix)`,
    { schema, prefix: `${name}_` },
  );
  const ids = new Map(
    rows.map((row) => [readRow(row).text("name"), readRow(row).integer("id")] as const),
  );
  const types = new Map<string, ParameterType>();
  const inputs = [
    "in_patience => :patience",
    "in_limited => CAST(:limited AS BOOLEAN)",
    "in_groups => CAST(:groups AS BIGINT[])",
  ];
  for (const [kind, columns] of rowKinds) {
    const typeId = ids.get(typeOf(name, kind));
    if (typeId === undefined) throw new TypeError(`the schema has no type for ${kind}`);
    const parameter = snakeCase(kind);
    types.set(kind, { typeId, columns: Object.entries(columns), parameter });
    inputs.push(`in_${parameter} => CAST(:${parameter} AS ${schema}.${typeOf(name, kind)}[])`);
  }
  // The ids make connections prepare the statement again for new types.
  const of = [...types.values()].map(({ typeId }) => typeId).join(" ");
  return { text: `SELECT /* ${of} */ ${schema}.${name}(${inputs.join(", ")}) AS outcomes`, types };
}

function parametersOf(
  types: Call["types"],
  drafts: readonly Draft[],
  moves: readonly CounterMove[],
): SqlParameters {
  const rows = rowsByKind(drafts);
  const parameters: Record<string, Uint8Array | string | null> = {
    patience: patienceOf(drafts.length),
    limited: String(moves.some(({ limit }) => limit !== null)),
    groups: binaryIntegers(drafts.map(({ group }) => group)),
  };
  for (const [kind, type] of types) {
    const placed = rows.get(kind);
    parameters[type.parameter] = placed ? binaryRows(type, placed) : null;
  }
  return parameters;
}

/** Groups the rows of all drafts by kind. Rows to lock are sorted in the common order. */
function rowsByKind(drafts: readonly Draft[]): ReadonlyMap<string, PlacedRow[]> {
  const rows = new Map<string, PlacedRow[]>();
  for (const [at, draft] of drafts.entries())
    for (const [kind, row] of draft.rows) {
      const placed = { place: at + 1, row };
      const others = rows.get(kind);
      if (others) others.push(placed);
      else rows.set(kind, [placed]);
    }
  for (const { kind } of comparisons) rows.get(kind)?.sort(inOrder);
  rows.get("closedStep")?.sort(({ row: a }, { row: b }) => {
    const [one, other] = [String(a["step_id"]), String(b["step_id"])];
    return one < other ? -1 : one > other ? 1 : 0;
  });
  const moved = rows.get("movedSession");
  if (moved) rows.set("movedSession", lastOfEach(moved));
  return rows;
}

/** Every transaction locks rows in this order. */
function inOrder({ row: a }: PlacedRow, { row: b }: PlacedRow): number {
  return byName(nameOf(a), nameOf(b));
}

/** Keeps the last row of each Session that several changes write. */
function lastOfEach(rows: readonly PlacedRow[]): PlacedRow[] {
  return rows.filter(({ row }, at) => {
    const last = rows.findLastIndex(
      ({ row: other }) =>
        other["id"] === row["id"] && other["organization_id"] === row["organization_id"],
    );
    return last === at;
  });
}

function nameOf(row: SqlParameters): RowName {
  return { organizationId: String(row["organization_id"]), id: String(row["id"]) };
}

/**
 * Reads the function's answer. It has one number for each change: its sequence number, 0 if stale, or the negative
 * place of the refused move. Then come the room left for each refused move, and each pace that a written change moved.
 */
function outcomesOf(
  answer: string,
  drafts: readonly Draft[],
  moves: readonly CounterMove[],
): Outcome[] {
  const numbers = answer.slice(1, -1).split(",").map(Number);
  const outcomes = numbers.slice(0, drafts.length);
  let nextLeft = drafts.length;
  let nextPace = drafts.length + outcomes.filter((number) => number < 0).length;
  return outcomes.map((number, at) => {
    if (number > 0) {
      const first = nextPace;
      for (const move of drafts[at]?.moves ?? []) if (move.floor > 0) nextPace++;
      return { kind: "written", number, paces: numbers.slice(first, nextPace) };
    }
    if (number === 0) return { kind: "stale" };
    const move = moves[-number - 1];
    const left = numbers[nextLeft++];
    if (!move || left === undefined) throw new TypeError("The database rejected an unknown move.");
    return { kind: "refused", move, left };
  });
}

/** The error for the caller: another if it chose an id that is taken. */
function takenIdOr(error: unknown): unknown {
  if (error instanceof PostgresFailure && error.state === uniqueViolation) {
    if (error.table === "sessions") return idTakenError("new Session");
    if (error.table === "responses") return idTakenError("stored response");
  }
  return error;
}
