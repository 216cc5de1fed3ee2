import type { Columns } from "./table-columns.ts";

/** Rows that are compared or moved in a commit, each of the change at a place in it. */
export interface Group {
  readonly columns: Columns;
}

/** A row that was looked at: how it is found, and the number that says whether it is as it was. */
const lookedAt: Columns = {
  place: "BIGINT",
  organization_id: "TEXT",
  id: "TEXT",
  version: "BIGINT",
};

/** What a commit compares, and how far it moves counters. */
export const groups = {
  lockedSteps: { columns: lookedAt },
  lockedSessions: { columns: lookedAt },
  keptResponses: { columns: lookedAt },
  keys: { columns: lookedAt },
  sessions: { columns: lookedAt },
  budgets: { columns: { place: "BIGINT", version: "BIGINT" } },
  matches: {
    columns: {
      place: "BIGINT",
      organization_id: "TEXT",
      key_id: "TEXT",
      source: "TEXT",
      chain: "BYTEA",
      found: "TEXT",
    },
  },
  moves: {
    columns: {
      place: "BIGINT",
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
  },
} as const satisfies Readonly<Record<string, Group>>;

export type GroupName = keyof typeof groups;

/** How a table's rows are compared: what says that one is as it was, and how it is locked until the commit ends. */
interface Comparison {
  readonly group: GroupName;
  readonly table: string;
  readonly version: string;
  readonly lock: "FOR UPDATE" | "FOR KEY SHARE" | "";
}

/** In the one order of locks: Steps, Sessions, responses; then what is compared alone. */
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

/** A parameter of the function, and of its statement, for a column of a group. */
export function parameterOf(group: string, column: string): string {
  return `${group.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}_${column}`;
}

/** The name of the array of a write's rows. */
export function rowsParameter(name: string): string {
  return parameterOf(name, "rows");
}
