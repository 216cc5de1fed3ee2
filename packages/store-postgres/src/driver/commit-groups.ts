import { snakeCase, writes } from "@tollgate/store-sql";
import { postgresDialect } from "../database/postgres-dialect.ts";
import { type Columns, type ColumnType, tableColumns } from "./table-columns.ts";

/** A row that a decision read: its key and its version. */
const comparedRow: Columns = {
  organization_id: "TEXT",
  id: "TEXT",
  version: "BIGINT",
};

/** The rows that a commit compares, and the moves of counters. */
export const groups = {
  lockedSteps: comparedRow,
  lockedSessions: comparedRow,
  keptResponses: comparedRow,
  keys: comparedRow,
  sessions: comparedRow,
  budgets: { version: "BIGINT" },
  matches: {
    organization_id: "TEXT",
    key_id: "TEXT",
    source: "TEXT",
    chain: "BYTEA",
    found: "TEXT",
  },
  unclaimed: {
    organization_id: "TEXT",
    key_id: "TEXT",
    endpoint: "TEXT",
    idempotency_key: "BYTEA",
  },
  moves: {
    budget_id: "TEXT",
    subject: "TEXT",
    period_start: "BIGINT",
    unit: "TEXT",
    floor: "BIGINT",
    settled: "BIGINT",
    held: "BIGINT",
    taken: "BIGINT",
    room: "BIGINT",
  },
} as const satisfies Readonly<Record<string, Columns>>;

export type GroupName = keyof typeof groups;

/** How a table's rows are compared: by which version, and under which lock. */
interface Comparison {
  readonly group: GroupName;
  readonly table: string;
  readonly version: string;
  readonly lock: "FOR UPDATE" | "FOR KEY SHARE" | "";
}

/** In the common order of locks: Steps, Sessions, responses; then rows that are only compared. */
export const comparisons: readonly Comparison[] = [
  {
    group: "lockedSteps",
    table: "steps",
    version: "CASE WHEN r.outcome = 'open' THEN r.attempt ELSE -r.attempt END",
    lock: "FOR UPDATE",
  },
  { group: "lockedSessions", table: "sessions", version: "r.updated", lock: "FOR UPDATE" },
  { group: "keptResponses", table: "responses", version: "1", lock: "FOR KEY SHARE" },
  { group: "keys", table: "api_keys", version: "r.version", lock: "" },
  { group: "sessions", table: "sessions", version: "r.updated", lock: "" },
];

/** The columns of every kind of row that a commit takes, in their order. */
export const rowKinds: ReadonlyMap<string, Columns> = columnsOfKinds();

function columnsOfKinds(): ReadonlyMap<string, Columns> {
  const kinds = new Map<string, Columns>(Object.entries(groups));
  const tables = tableColumns();
  for (const [name, { table, columns }] of Object.entries(writes)) {
    const types = tables.get(table) ?? {};
    kinds.set(
      name,
      Object.fromEntries(Object.entries(types).filter(([column]) => columns.includes(column))),
    );
  }
  return kinds;
}

/** The composite type of a kind of row, by the name of the function that takes it. */
export function typeOf(name: string, kind: string): string {
  return `${name}_${snakeCase(kind)}`;
}

/** The statements that make the types of all rows. */
export function createTypes(name: string): string {
  const { text, integer, bytes } = postgresDialect;
  const types: Readonly<Record<ColumnType, string>> = { TEXT: text, BIGINT: integer, BYTEA: bytes };
  return [...rowKinds]
    .map(([kind, columns]) => {
      const definitions = Object.entries(columns).map(
        ([column, type]) => `${column} ${types[type]}`,
      );
      return `CREATE TYPE ${typeOf(name, kind)} AS (${["place BIGINT", ...definitions].join(", ")})`;
    })
    .join(";\n");
}
