import { adminTokenColumns } from "./rows/admin-token-row.ts";
import { checkpointRows, logLeafColumns } from "./rows/checkpoint-row.ts";
import { decisionColumns } from "./rows/decision-row.ts";
import { keyRows } from "./rows/key-row.ts";
import { leafColumns } from "./rows/leaf-row.ts";
import { sessionColumns } from "./rows/session-row.ts";
import { stepReadColumns } from "./rows/step-row.ts";
import { usageRows } from "./rows/usage-row.ts";
import type { PagedList } from "./select-page.ts";
import { columnsOf } from "./tables.ts";

const newestFirst = {
  direction: "DESC",
  tie: { column: "sequence", direction: "DESC", type: "integer" },
} as const;

/** Every list of the store, with the sort order of its pages. */
export const lists = {
  keys: {
    name: "keys",
    table: "api_keys",
    byOrganization: true,
    isSealed: true,
    columns: keyRows.columns,
    order: "created_at",
    ...newestFirst,
  },
  sessions: {
    name: "sessions",
    table: "sessions",
    byOrganization: true,
    isSealed: true,
    columns: sessionColumns,
    order: "updated",
    direction: "DESC",
    tie: null,
  },
  steps: {
    name: "steps",
    table: "steps",
    byOrganization: true,
    isSealed: true,
    columns: stepReadColumns,
    order: "opened_at",
    ...newestFirst,
  },
  decisions: {
    name: "decisions",
    table: "decisions",
    byOrganization: true,
    isSealed: true,
    columns: decisionColumns,
    order: "at",
    ...newestFirst,
  },
  adminTokens: {
    name: "admin tokens",
    table: "admin_tokens",
    byOrganization: false,
    columns: adminTokenColumns,
    order: "created_at",
    ...newestFirst,
  },
  counters: {
    name: "counters",
    table: "budget_counters",
    byOrganization: false,
    columns: columnsOf("budget_counters"),
    order: "period_start",
    direction: "DESC",
    tie: { column: "subject", direction: "ASC", type: "text" },
  },
  changes: {
    name: "changes",
    table: "leaves",
    byOrganization: false,
    isSealed: true,
    columns: leafColumns,
    order: "at",
    ...newestFirst,
  },
  usage: {
    name: "usage",
    table: "usage_hours",
    byOrganization: true,
    columns: usageRows.columns,
    order: "hour",
    direction: "ASC",
    tie: { column: "id", direction: "ASC", type: "text" },
  },
  checkpoints: {
    name: "checkpoints",
    table: "checkpoints",
    byOrganization: false,
    columns: checkpointRows.columns,
    order: "number",
    direction: "ASC",
    tie: null,
  },
  logLeaves: {
    name: "log leaves",
    table: "log_leaves",
    byOrganization: false,
    columns: logLeafColumns,
    order: "number",
    direction: "ASC",
    tie: null,
  },
  leaves: {
    name: "leaves",
    table: "leaves",
    byOrganization: false,
    columns: leafColumns,
    order: "sequence",
    direction: "ASC",
    tie: null,
  },
} as const satisfies Record<string, PagedList>;
