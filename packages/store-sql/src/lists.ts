import { checkpointRows, logLeafColumns } from "./rows/checkpoint-row.ts";
import { keyRows } from "./rows/key-row.ts";
import { sessionColumns } from "./rows/session-row.ts";
import { stepReadColumns } from "./rows/step-row.ts";
import type { PagedList } from "./select-page.ts";
import { columnsOf } from "./tables.ts";

const newestFirst = {
  direction: "DESC",
  tie: { column: "sequence", direction: "DESC", type: "integer" },
} as const;

const oldestFirst = { direction: "ASC", tie: null } as const;

/** Lists of an organization, whose places count what the whole store has written. */
const sealed = { byOrganization: true, isSealed: true } as const;

/** Every list of the store, with the sort order of its pages. */
export const lists = {
  keys: {
    name: "keys",
    table: "api_keys",
    ...sealed,
    columns: keyRows.columns,
    order: "created_at",
    ...newestFirst,
  },
  sessions: {
    name: "sessions",
    table: "sessions",
    ...sealed,
    columns: sessionColumns,
    order: "updated",
    direction: "DESC",
    tie: null,
  },
  steps: {
    name: "steps",
    table: "steps",
    ...sealed,
    columns: stepReadColumns,
    order: "opened_at",
    ...newestFirst,
  },
  decisions: {
    name: "decisions",
    table: "decisions",
    ...sealed,
    columns: columnsOf("decisions"),
    order: "at",
    ...newestFirst,
  },
  adminTokens: {
    name: "admin tokens",
    table: "admin_tokens",
    columns: columnsOf("admin_tokens"),
    order: "created_at",
    ...newestFirst,
  },
  counters: {
    name: "counters",
    table: "budget_counters",
    columns: columnsOf("budget_counters"),
    order: "period_start",
    direction: "DESC",
    tie: { column: "subject", direction: "ASC", type: "text" },
  },
  changes: {
    name: "changes",
    table: "leaves",
    isSealed: true,
    columns: columnsOf("leaves"),
    order: "at",
    ...newestFirst,
  },
  usage: {
    name: "usage",
    table: "usage_hours",
    byOrganization: true,
    columns: columnsOf("usage_hours"),
    order: "hour",
    direction: "ASC",
    tie: { column: "id", direction: "ASC", type: "text" },
  },
  checkpoints: {
    name: "checkpoints",
    table: "checkpoints",
    columns: checkpointRows.columns,
    order: "number",
    ...oldestFirst,
  },
  logLeaves: {
    name: "log leaves",
    table: "log_leaves",
    columns: logLeafColumns,
    order: "number",
    ...oldestFirst,
  },
  leaves: {
    name: "leaves",
    table: "leaves",
    columns: columnsOf("leaves"),
    order: "sequence",
    ...oldestFirst,
  },
} as const satisfies Record<string, PagedList>;
