import { type ColumnType, columnTypesOf, snakeCase, writes } from "@tollgate/store-sql";
import { postgresDialect } from "../database/postgres-dialect.ts";

/** Columns, in order, with their types. */
type Columns = Readonly<Record<string, ColumnType>>;

/** A row that a decision read: its key and its version. */
const comparedRow: Columns = {
  organization_id: "text",
  id: "text",
  version: "integer",
};

/** The rows that a commit checks before it writes: rows that a decision read, and moves of counters. */
export const checkedKinds = {
  lockedSteps: comparedRow,
  lockedSessions: comparedRow,
  keptResponses: comparedRow,
  keys: comparedRow,
  sessions: comparedRow,
  budgets: { version: "integer" },
  matches: {
    organization_id: "text",
    key_id: "text",
    source: "text",
    chain: "bytes",
    found: "text",
  },
  unclaimed: {
    organization_id: "text",
    key_id: "text",
    endpoint: "text",
    idempotency_key: "bytes",
  },
  moves: {
    budget_id: "text",
    subject: "text",
    period_start: "integer",
    unit: "text",
    floor: "integer",
    settled: "integer",
    held: "integer",
    taken: "integer",
    room: "integer",
  },
} as const satisfies Readonly<Record<string, Columns>>;

export type CheckedKind = keyof typeof checkedKinds;

/** How a table's rows are compared: by which version, and under which lock. */
interface Comparison {
  readonly kind: CheckedKind;
  readonly table: string;
  readonly version: string;
  readonly lock: "FOR UPDATE" | "FOR KEY SHARE" | "";
}

/** In the common order of locks: Steps, Sessions, responses; then rows that are only compared. */
export const comparisons: readonly Comparison[] = [
  {
    kind: "lockedSteps",
    table: "steps",
    version: "CASE WHEN r.outcome = 'open' THEN r.attempt ELSE -r.attempt END",
    lock: "FOR UPDATE",
  },
  { kind: "lockedSessions", table: "sessions", version: "r.updated", lock: "FOR UPDATE" },
  { kind: "keptResponses", table: "responses", version: "1", lock: "FOR KEY SHARE" },
  { kind: "keys", table: "api_keys", version: "r.version", lock: "" },
  { kind: "sessions", table: "sessions", version: "r.updated", lock: "" },
];

/** The columns of every kind of row that a commit takes, in their order. */
export const rowKinds: ReadonlyMap<string, Columns> = columnsOfKinds();

function columnsOfKinds(): ReadonlyMap<string, Columns> {
  const kinds = new Map<string, Columns>(Object.entries(checkedKinds));
  for (const [name, { table, columns }] of Object.entries(writes)) {
    const types = Object.entries(columnTypesOf(table));
    kinds.set(name, Object.fromEntries(types.filter(([column]) => columns.includes(column))));
  }
  return kinds;
}

/** The composite type of a kind of row, by the name of the function that takes it. */
export function typeOf(name: string, kind: string): string {
  return `${name}_${snakeCase(kind)}`;
}

/** The statements that make the types of all rows. */
export function createTypes(name: string): string {
  return [...rowKinds]
    .map(([kind, columns]) => {
      const definitions = Object.entries(columns).map(
        ([column, type]) => `${column} ${postgresDialect[type]}`,
      );
      return `CREATE TYPE ${typeOf(name, kind)} AS (${["place BIGINT", ...definitions].join(", ")})`;
    })
    .join(";\n");
}
