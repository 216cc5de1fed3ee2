import { changesAlone, continued, listed } from "./index-conditions.ts";

export interface Table {
  /** Each column with its type. `?` marks those that may be null. */
  readonly columns: string;
  /** The primary key; null if it differs between the databases. */
  readonly key: string | null;
  /** The clause of the dialect for its kind of table. Default `keyedTable`. */
  readonly kind?: "keyedTable" | "wideTable" | "stepsTable";
  /** The columns of each index, and the condition of its rows. */
  readonly indexes?: Readonly<Record<string, string>>;
  readonly uniqueIndexes?: Readonly<Record<string, string>>;
}

/**
 * The tables, which have few, wide rows. Every key begins with the organization. Each index serves a read that a request
 * makes, or a list that would otherwise scan the whole organization.
 */
export const tables = {
  store_state: {
    columns: "id integer, budgets_version integer, policy_version text?, cursor_secret text",
    key: "id",
  },
  organizations: { columns: "id text, salt bytes", key: "id" },
  api_keys: {
    columns: `organization_id text, id text, user_id text, label text, prefix text, default_data_class text,
      minimum_data_class text, models text?, aliases text?, leading_system text?, created_at integer,
      expires_at integer?, revoked_at integer?, last_used_at integer?, version integer, sequence integer`,
    key: "organization_id, id",
    indexes: {
      api_keys_by_time: `(organization_id, created_at, sequence) WHERE ${listed.keys}`,
      api_keys_by_user: `(organization_id, user_id, created_at, sequence) WHERE ${listed.keys}`,
    },
    uniqueIndexes: {
      // At most one key without a secret for each user and label.
      api_keys_without_secret: "(organization_id, user_id, label) WHERE prefix = ''",
    },
  },
  key_secrets: {
    columns: "digest bytes, organization_id text, key_id text, expires_at integer?",
    key: "digest",
    indexes: {
      key_secrets_by_key: "(organization_id, key_id)",
    },
  },
  // `organizations` is a JSON array, or null for all.
  admin_tokens: {
    columns: `id text, digest bytes, label text, prefix text, role text, organizations text?, transcripts text?,
      created_at integer, expires_at integer, revoked_at integer?, last_used_at integer?, sequence integer`,
    key: "id",
    indexes: {
      admin_tokens_by_time: "(created_at, sequence)",
    },
    uniqueIndexes: {
      admin_tokens_by_digest: "(digest)",
    },
  },
  processes: { columns: "id text, renewal integer, lapses_at integer", key: "id" },
  // Sealed credentials of customer-owned gateways, found and listed by their key only.
  connections: {
    columns: `organization_id text, gateway text, id text, created_at integer, updated_at integer, key_id text,
      wrapped_key bytes, credential bytes`,
    key: "organization_id, gateway",
  },
  // `updated` is the store's sequence. `data_classes` is a JSON array that only grows. `in_flight` marks a Session
  // that consists of its unanswered first Step.
  sessions: {
    columns: `organization_id text, id text, user_id text, key_id text, source text, head bytes, length integer,
      created_at integer, updated_at integer, updated integer, in_flight integer, turn_id text,
      branched_from_session_id text?, common_length integer, root_session_id text?,
      history_from_session_id text?, data_classes text`,
    key: "organization_id, id",
    indexes: {
      // For lists, whose condition every row meets and no request states. Without it, PostgreSQL would also use this
      // index to find the Session of a request, and read every Session of its key.
      sessions_by_time: `(organization_id, updated) WHERE ${listed.sessions}`,
      sessions_by_update: `(organization_id, key_id, source, updated, length, in_flight, head, id) WHERE ${continued}`,
      // The head is first, because it alone leaves few rows: a tree may have any number of branches.
      branches_by_head:
        "(head, organization_id, root_session_id) WHERE root_session_id IS NOT NULL",
      branches_by_history:
        "(organization_id, history_from_session_id, updated_at) WHERE history_from_session_id IS NOT NULL",
    },
  },
  turns: { columns: "organization_id text, id text, session_id text", key: "organization_id, id" },
  // Positions below 0 aren't part of the transcript and belong to their Step: -1 is a reply that did not join, -2 the
  // instructions, -3 the reasoning that the client saw.
  transcript_parts: {
    columns: `organization_id text, session_id text, position integer, step_id text, kind text, count integer,
      chain bytes, content bytes?, salt bytes, commitment bytes`,
    key: "organization_id, session_id, position, step_id",
    kind: "wideTable",
  },
  // The error texts of failed attempts. A separate table, so that they are erased with their Session's transcript.
  attempt_errors: {
    columns: `organization_id text, step_id text, attempt integer, session_id text, content bytes?, salt bytes,
      commitment bytes`,
    key: "organization_id, step_id, attempt",
    indexes: {
      attempt_errors_by_session: "(organization_id, session_id, step_id, attempt)",
    },
  },
  // For each organization, the last Session (by update) whose transcript was checked for erasure.
  erasures: { columns: "organization_id text, updated integer", key: "organization_id" },
  // A Step without a Session has no `turn_id` either, and its `length` is 0. `opening`, `attempt_start` and `ending`
  // are JSON arrays. `unsuccessful` is the outcome of the few unsuccessful Steps, null for others. An index on the
  // outcome itself would make PostgreSQL update every index whenever a Step settles.
  steps: {
    columns: `organization_id text, id text, user_id text, key_id text, key_label text, source text, endpoint text,
      data_class text, decision_id text, session_id text?, turn_id text?, metadata text?, process_id text,
      opened_at integer, outcome text, gateway text, vendor text, model text, connection text, host text?,
      attempt integer, attempt_start text, attempt_end text?, earlier_attempts text?, length integer,
      opening text, ending text?, sequence integer,
      unsuccessful text? GENERATED ALWAYS AS
        (CASE WHEN outcome NOT IN ('completed', 'open') THEN outcome END) STORED`,
    key: "organization_id, id",
    kind: "stepsTable",
    indexes: {
      steps_by_time: `(organization_id, opened_at, sequence) WHERE ${listed.steps}`,
      steps_by_session: `(organization_id, session_id, opened_at, sequence) WHERE ${listed.steps}`,
      steps_by_key: `(organization_id, key_id, opened_at, sequence) WHERE ${listed.steps}`,
      steps_by_model: `(organization_id, lower(model), opened_at, sequence) WHERE ${listed.steps}`,
      steps_unsuccessful:
        "(organization_id, unsuccessful, opened_at, sequence) WHERE unsuccessful IS NOT NULL",
      // A search for a metadata pair reads only the Steps that have metadata, newest first.
      steps_with_metadata: "(organization_id, opened_at, sequence) WHERE metadata IS NOT NULL",
    },
  },
  // As a column of `steps`, each change would rewrite the Step and an index entry.
  open_steps: {
    columns: `process_id text, step_id text, organization_id text, renewal integer, output_tokens integer?`,
    key: "process_id, step_id, organization_id",
  },
  // A history is read through `built_on` to the root. A removed response that it needs has the expiry -1, or 0 once none does.
  // `inherited` holds the messages before a response whose predecessor was gone.
  responses: {
    columns: `organization_id text, id text, user_id text, key_id text, step_id text, session_id text, data_class text,
      previous_response_id text?, built_on text?, idempotency_key bytes?, created_at integer, expires_at integer,
      inherited bytes, messages bytes, input bytes, body bytes`,
    key: "organization_id, id",
    kind: "wideTable",
    indexes: {
      responses_by_origin: "(organization_id, built_on, id) WHERE built_on IS NOT NULL",
      responses_by_expiry: "(expires_at, organization_id, id)",
    },
  },
  // Claims on idempotency keys. `idempotency_key` and `request` are digests. The last columns are the kept answer.
  claims: {
    columns: `organization_id text, key_id text, endpoint text, idempotency_key bytes, step_id text, request bytes,
      decision_id text, data_class text, opened_at integer, state text, expires_at integer?, model text?,
      headers text?, body bytes?`,
    key: "organization_id, key_id, endpoint, idempotency_key",
    kind: "wideTable",
    indexes: {
      // The claims of open Steps don't expire.
      claims_by_expiry:
        "(expires_at, organization_id, key_id, endpoint, idempotency_key, step_id) WHERE expires_at IS NOT NULL",
    },
  },
  decisions: {
    columns: `organization_id text, id text, user_id text, key_id text, effect text, at integer, verdict text, facts text,
      policy_version text, first_decision_id text?, refused_by text?, refusal text?, sequence integer`,
    key: "organization_id, id",
    kind: "wideTable",
    indexes: {
      decisions_by_time: `(organization_id, at, sequence) WHERE ${listed.decisions}`,
      decisions_by_key: `(organization_id, key_id, at, sequence) WHERE ${listed.decisions}`,
      decisions_denied: "(organization_id, at, sequence) WHERE effect = 'deny'",
      decisions_refused: "(organization_id, at, sequence) WHERE refused_by IS NOT NULL",
    },
  },
  leaves: {
    columns:
      "organization_id text, sequence integer, id text, kind text, at integer, meta text, hash bytes",
    key: null,
    kind: "wideTable",
    indexes: {
      // The few leaves of administrative changes, in the order of their lists.
      leaves_changes: `(organization_id, at, sequence) WHERE ${changesAlone}`,
      leaves_changes_of_all: `(at, sequence) WHERE ${changesAlone}`,
    },
  },
  // The place of each sealed leaf in its log. Separate rows, because leaves never change: numbering them in place
  // would write each of them twice. Nothing here is part of a request.
  sealed_leaves: {
    columns: "organization_id text, number integer, sequence integer",
    key: "organization_id, number",
    uniqueIndexes: {
      sealed_leaves_by_sequence: "(organization_id, sequence)",
    },
  },
  // Leaves up to `settled` are all sealed, and none can appear there any more. `since` is the time of the first leaf
  // that it adds.
  checkpoints: {
    columns: `organization_id text, number integer, size integer, frontier bytes, at integer, note text?,
      settled integer, since integer`,
    key: "organization_id, number",
  },
  budgets: {
    columns: `id text, scope text, unit text, amount integer, period text, mode text, warn_at text, sequence integer`,
    key: "id",
  },
  rate_limits: {
    columns:
      "id text, scope text, unit text, amount integer, period text?, burst integer, sequence integer",
    key: "id",
  },
  // Temporary raises of limits.
  budget_raises: {
    columns: `budget_id text, id text, unit text, amount integer, at integer, until integer, actor text?,
      sequence integer`,
    key: "budget_id, id",
  },
  budget_counters: {
    columns: `budget_id text, subject text, period_start integer, unit text, settled integer,
      held integer CHECK (held >= 0)`,
    key: "budget_id, subject, period_start",
  },
  // `settled` is null while the amount is held: the counters can be recomputed from these rows.
  holds: {
    columns: `organization_id text, step_id text, attempt integer, budget_id text, subject text, period_start integer,
      unit text, amount integer, settled integer?`,
    key: "organization_id, step_id, attempt, budget_id, subject, period_start",
  },
  // Later corrections of an attempt. A counter's ledger is the settled amounts of its holds plus the differences
  // here, for corrections with `held_by`; they stay when Steps are removed. `held_by` is the attempt that took the
  // holds, null if there were none.
  corrections: {
    columns: `organization_id text, step_id text, id text, attempt integer, at integer, actor text?, reason text,
      usage text, cost integer?, held_by integer?, usd_delta integer, tokens_delta integer, sequence integer`,
    key: "organization_id, step_id, id",
  },
  // Sums over Steps by hour, with their callers and without. A fold of Steps adds rows, and so does each correction; no row changes.
  usage_hours: {
    columns: `organization_id text, detail text, hour integer, id text, names text, figures bytes`,
    key: "organization_id, detail, hour, id",
  },
  usage_marks: { columns: "organization_id text, mark text", key: "organization_id" },
} as const satisfies Readonly<Record<string, Table>>;

/** The name of a table that the stores share. */
export type TableName = keyof typeof tables;

/** A column of a table with its type. */
export const typedColumn = /\b(\w+) (text|integer|bytes)\b(\??)/g;

/** The types of columns, by their names in dialects. */
export type ColumnType = "text" | "integer" | "bytes";

/** The columns of a table with their types, in order. */
export function columnTypesOf(table: TableName): Readonly<Record<string, ColumnType>> {
  const found = tables[table].columns.matchAll(typedColumn);
  return Object.fromEntries([...found].map(([, column, type]) => [column, type]));
}

/** The names of a table's columns, in order. */
export function columnsOf(table: TableName): readonly string[] {
  return Object.keys(columnTypesOf(table));
}
