import { changesAlone } from "./changes-alone.ts";
import type { SqlDialect } from "./dialect.ts";
import { continued, listed } from "./index-conditions.ts";

/** The version of the schema below; a database with a higher one belongs to a newer release. */
export const schemaVersion = 1;

/**
 * A failure that `migrate()` fixes. Its `needsMigration` is the same message without that remedy, for the command line, which
 * has others.
 */
export function needingMigration(fail: (problem: string) => Error, problem: string): Error {
  const { message: needsMigration } = fail(problem);
  return Object.assign(fail(`${problem}; call migrate() first`), { needsMigration });
}

/**
 * The statements that lead from each version to the next, keyed by the version they lead to; forward only. Tables have
 * few, wide rows. Every key begins with the organization. Each index serves a read that a request makes, or a list that
 * would otherwise scan the whole organization.
 */
export function schemaSteps(dialect: SqlDialect): ReadonlyMap<number, readonly string[]> {
  return new Map([
    [
      1,
      [
        ...identity(dialect),
        ...sessions(dialect),
        ...steps(dialect),
        ...responses(dialect),
        ...claims(dialect),
        ...evidence(dialect),
        ...budgets(dialect),
        ...usage(dialect),
      ],
    ],
  ]);
}

function identity({ text, integer, bytes, keyedTable, secret }: SqlDialect): readonly string[] {
  return [
    `CREATE TABLE store_state (
      id ${integer} NOT NULL PRIMARY KEY, budgets_version ${integer} NOT NULL, policy_version ${text},
      cursor_secret ${text} NOT NULL)${keyedTable}`,
    `INSERT INTO store_state (id, budgets_version, cursor_secret) VALUES (1, 0, ${secret})`,
    `CREATE TABLE organizations (id ${text} NOT NULL PRIMARY KEY, salt ${bytes} NOT NULL)${keyedTable}`,
    `CREATE TABLE api_keys (
      organization_id ${text} NOT NULL, id ${text} NOT NULL, user_id ${text} NOT NULL, label ${text} NOT NULL,
      prefix ${text} NOT NULL, default_data_class ${text} NOT NULL, minimum_data_class ${text} NOT NULL,
      models ${text}, aliases ${text}, leading_system ${text}, created_at ${integer} NOT NULL, expires_at ${integer},
      revoked_at ${integer}, last_used_at ${integer}, version ${integer} NOT NULL, sequence ${integer} NOT NULL,
      PRIMARY KEY (organization_id, id))${keyedTable}`,
    `CREATE INDEX api_keys_by_time ON api_keys (organization_id, created_at, sequence)
      WHERE ${listed.keys}`,
    `CREATE INDEX api_keys_by_user ON api_keys (organization_id, user_id, created_at, sequence)
      WHERE ${listed.keys}`,
    // At most one key without a secret for each user and label.
    `CREATE UNIQUE INDEX api_keys_without_secret ON api_keys (organization_id, user_id, label)
      WHERE prefix = ''`,
    `CREATE TABLE key_secrets (
      digest ${bytes} NOT NULL PRIMARY KEY, organization_id ${text} NOT NULL, key_id ${text} NOT NULL,
      expires_at ${integer})${keyedTable}`,
    `CREATE INDEX key_secrets_by_key ON key_secrets (organization_id, key_id)`,
    // `organizations` is a JSON array, or null for all.
    `CREATE TABLE admin_tokens (
      id ${text} NOT NULL PRIMARY KEY, digest ${bytes} NOT NULL, label ${text} NOT NULL, prefix ${text} NOT NULL,
      role ${text} NOT NULL, organizations ${text}, transcripts ${text}, created_at ${integer} NOT NULL,
      expires_at ${integer} NOT NULL, revoked_at ${integer}, last_used_at ${integer},
      sequence ${integer} NOT NULL)${keyedTable}`,
    `CREATE UNIQUE INDEX admin_tokens_by_digest ON admin_tokens (digest)`,
    `CREATE INDEX admin_tokens_by_time ON admin_tokens (created_at, sequence)`,
    `CREATE TABLE processes (
      id ${text} NOT NULL PRIMARY KEY, renewal ${integer} NOT NULL,
      lapses_at ${integer} NOT NULL)${keyedTable}`,
    // Sealed credentials of customer-owned gateways, found and listed by their key only.
    `CREATE TABLE connections (
      organization_id ${text} NOT NULL, gateway ${text} NOT NULL, id ${text} NOT NULL,
      created_at ${integer} NOT NULL, updated_at ${integer} NOT NULL,
      key_id ${text} NOT NULL, wrapped_key ${bytes} NOT NULL, credential ${bytes} NOT NULL,
      PRIMARY KEY (organization_id, gateway))${keyedTable}`,
  ];
}

function sessions({
  text,
  integer,
  bytes,
  keyedTable,
  wideTable,
  sessionsByKey,
  turnsTable,
}: SqlDialect): readonly string[] {
  return [
    // `updated` is the store's sequence. `data_classes` is a JSON array that only grows. `in_flight` marks a Session
    // that consists of its unanswered first Step.
    `CREATE TABLE sessions (
      organization_id ${text} NOT NULL, id ${text} NOT NULL, user_id ${text} NOT NULL, key_id ${text} NOT NULL,
      source ${text} NOT NULL, head ${bytes} NOT NULL, length ${integer} NOT NULL,
      created_at ${integer} NOT NULL, updated_at ${integer} NOT NULL, updated ${integer} NOT NULL,
      in_flight ${integer} NOT NULL, turn_id ${text} NOT NULL, branched_from_session_id ${text},
      common_length ${integer} NOT NULL, root_session_id ${text}, history_from_session_id ${text},
      data_classes ${text} NOT NULL, PRIMARY KEY (organization_id, id))${keyedTable}`,
    // For lists, whose condition every row meets and no request states. Without it, PostgreSQL would also use these
    // indexes to find the Session of a request, and read every Session of its key.
    `CREATE INDEX sessions_by_time ON sessions (organization_id, updated) WHERE ${listed.sessions}`,
    ...sessionsByKey,
    `CREATE INDEX sessions_by_update ON sessions
      (organization_id, key_id, source, updated, length, in_flight, head, id)
      WHERE ${continued}`,
    // The head is first, because it alone leaves few rows: a tree may have any number of branches.
    `CREATE INDEX branches_by_head ON sessions (head, organization_id, root_session_id)
      WHERE root_session_id IS NOT NULL`,
    `CREATE INDEX branches_by_history ON sessions (organization_id, history_from_session_id, updated_at)
      WHERE history_from_session_id IS NOT NULL`,
    `CREATE TABLE ${turnsTable} (
      organization_id ${text} NOT NULL, id ${text} NOT NULL, session_id ${text} NOT NULL,
      PRIMARY KEY (organization_id, id))${keyedTable}`,
    // Positions below 0 aren't part of the transcript and belong to their Step: -1 is a reply that did not join, -2 the
    // instructions, -3 the reasoning that the client saw.
    `CREATE TABLE transcript_parts (
      organization_id ${text} NOT NULL, session_id ${text} NOT NULL, position ${integer} NOT NULL,
      step_id ${text} NOT NULL, kind ${text} NOT NULL, count ${integer} NOT NULL, chain ${bytes} NOT NULL,
      content ${bytes}, salt ${bytes} NOT NULL, commitment ${bytes} NOT NULL,
      PRIMARY KEY (organization_id, session_id, position, step_id))${wideTable}`,
    // The error texts of failed attempts. A separate table, so that they are erased with their Session's transcript.
    `CREATE TABLE attempt_errors (
      organization_id ${text} NOT NULL, step_id ${text} NOT NULL, attempt ${integer} NOT NULL,
      session_id ${text} NOT NULL, content ${bytes}, salt ${bytes} NOT NULL, commitment ${bytes} NOT NULL,
      PRIMARY KEY (organization_id, step_id, attempt))${keyedTable}`,
    `CREATE INDEX attempt_errors_by_session ON attempt_errors
      (organization_id, session_id, step_id, attempt)`,
    // For each organization, the last Session (by update) whose transcript was checked for erasure.
    `CREATE TABLE erasures (
      organization_id ${text} NOT NULL PRIMARY KEY, updated ${integer} NOT NULL)${keyedTable}`,
  ];
}

function steps({ text, integer, stepsTable, stepsBesides }: SqlDialect): readonly string[] {
  return [
    // A Step without a Session has no `turn_id` either, and its `length` is 0. `opening`, `attempt_start` and `ending`
    // are JSON arrays. `unsuccessful` is the outcome of the few unsuccessful Steps, null for others. An index on the
    // outcome itself would make PostgreSQL update every index whenever a Step settles.
    `CREATE TABLE steps (
      organization_id ${text} NOT NULL, id ${text} NOT NULL, user_id ${text} NOT NULL, key_id ${text} NOT NULL,
      key_label ${text} NOT NULL, source ${text} NOT NULL, endpoint ${text} NOT NULL, data_class ${text} NOT NULL,
      decision_id ${text} NOT NULL, session_id ${text}, turn_id ${text}, metadata ${text}, process_id ${text} NOT NULL,
      opened_at ${integer} NOT NULL, outcome ${text} NOT NULL, gateway ${text} NOT NULL, vendor ${text} NOT NULL,
      model ${text} NOT NULL, connection ${text} NOT NULL, host ${text}, attempt ${integer} NOT NULL,
      attempt_start ${text} NOT NULL, attempt_end ${text}, earlier_attempts ${text}, length ${integer} NOT NULL,
      opening ${text} NOT NULL, ending ${text}, ${stepsBesides} sequence ${integer} NOT NULL,
      unsuccessful ${text} GENERATED ALWAYS AS
        (CASE WHEN outcome NOT IN ('completed', 'open') THEN outcome END) STORED,
      PRIMARY KEY (organization_id, id))${stepsTable}`,
    `CREATE INDEX steps_by_time ON steps (organization_id, opened_at, sequence)
      WHERE ${listed.steps}`,
    `CREATE INDEX steps_by_session ON steps (organization_id, session_id, opened_at, sequence)
      WHERE ${listed.steps}`,
    `CREATE INDEX steps_by_key ON steps (organization_id, key_id, opened_at, sequence)
      WHERE ${listed.steps}`,
    `CREATE INDEX steps_by_model ON steps (organization_id, lower(model), opened_at, sequence)
      WHERE ${listed.steps}`,
    `CREATE INDEX steps_unsuccessful ON steps (organization_id, unsuccessful, opened_at, sequence)
      WHERE unsuccessful IS NOT NULL`,
    // A search for a metadata pair reads only the Steps that have metadata, newest first.
    `CREATE INDEX steps_with_metadata ON steps (organization_id, opened_at, sequence)
      WHERE metadata IS NOT NULL`,
  ];
}

function responses({ text, integer, bytes, wideTable }: SqlDialect): readonly string[] {
  return [
    // A history is read through `built_on` to the root. A removed response that it needs has the expiry -1, or 0 once none does.
    // `inherited` holds the messages before a response whose predecessor was gone.
    `CREATE TABLE responses (
      organization_id ${text} NOT NULL, id ${text} NOT NULL, user_id ${text} NOT NULL, key_id ${text} NOT NULL,
      step_id ${text} NOT NULL, session_id ${text} NOT NULL, data_class ${text} NOT NULL,
      previous_response_id ${text}, built_on ${text}, idempotency_key ${bytes}, created_at ${integer} NOT NULL,
      expires_at ${integer} NOT NULL, inherited ${bytes} NOT NULL, messages ${bytes} NOT NULL,
      input ${bytes} NOT NULL, body ${bytes} NOT NULL,
      PRIMARY KEY (organization_id, id))${wideTable}`,
    `CREATE INDEX responses_by_origin ON responses (organization_id, built_on, id)
      WHERE built_on IS NOT NULL`,
    `CREATE INDEX responses_by_expiry ON responses (expires_at, organization_id, id)`,
  ];
}

function claims({ text, integer, bytes, wideTable }: SqlDialect): readonly string[] {
  return [
    // Claims on idempotency keys. `idempotency_key` and `request` are digests. The last columns are the kept answer.
    `CREATE TABLE claims (
      organization_id ${text} NOT NULL, key_id ${text} NOT NULL, endpoint ${text} NOT NULL,
      idempotency_key ${bytes} NOT NULL, step_id ${text} NOT NULL, request ${bytes} NOT NULL,
      decision_id ${text} NOT NULL, data_class ${text} NOT NULL, opened_at ${integer} NOT NULL,
      state ${text} NOT NULL, expires_at ${integer}, model ${text}, headers ${text}, body ${bytes},
      PRIMARY KEY (organization_id, key_id, endpoint, idempotency_key))${wideTable}`,
    // The claims of open Steps don't expire.
    `CREATE INDEX claims_by_expiry ON claims
      (expires_at, organization_id, key_id, endpoint, idempotency_key, step_id)
      WHERE expires_at IS NOT NULL`,
  ];
}

function evidence({
  text,
  integer,
  bytes,
  keyedTable,
  wideTable,
  leafNumber,
  leafKey,
}: SqlDialect): readonly string[] {
  return [
    `CREATE TABLE decisions (
      organization_id ${text} NOT NULL, id ${text} NOT NULL, user_id ${text} NOT NULL, key_id ${text} NOT NULL,
      effect ${text} NOT NULL, at ${integer} NOT NULL, verdict ${text} NOT NULL, facts ${text} NOT NULL,
      policy_version ${text} NOT NULL, first_decision_id ${text}, refused_by ${text}, refusal ${text},
      sequence ${integer} NOT NULL, PRIMARY KEY (organization_id, id))${wideTable}`,
    `CREATE INDEX decisions_by_time ON decisions (organization_id, at, sequence)
      WHERE ${listed.decisions}`,
    `CREATE INDEX decisions_by_key ON decisions (organization_id, key_id, at, sequence)
      WHERE ${listed.decisions}`,
    `CREATE INDEX decisions_denied ON decisions (organization_id, at, sequence)
      WHERE effect = 'deny'`,
    `CREATE INDEX decisions_refused ON decisions (organization_id, at, sequence)
      WHERE refused_by IS NOT NULL`,
    `CREATE TABLE leaves (
      organization_id ${text} NOT NULL, sequence ${leafNumber}, id ${text} NOT NULL,
      kind ${text} NOT NULL, at ${integer} NOT NULL, meta ${text} NOT NULL, hash ${bytes} NOT NULL${leafKey})${wideTable}`,
    // The few leaves of administrative changes, in the order of their lists.
    `CREATE INDEX leaves_changes ON leaves (organization_id, at, sequence) WHERE ${changesAlone}`,
    `CREATE INDEX leaves_changes_of_all ON leaves (at, sequence) WHERE ${changesAlone}`,
    // The place of each sealed leaf in its log. Separate rows, because leaves never change: numbering them in place would
    // write each of them twice. Nothing here is part of a request.
    `CREATE TABLE sealed_leaves (
      organization_id ${text} NOT NULL, number ${integer} NOT NULL, sequence ${integer} NOT NULL,
      PRIMARY KEY (organization_id, number))${keyedTable}`,
    `CREATE UNIQUE INDEX sealed_leaves_by_sequence ON sealed_leaves (organization_id, sequence)`,
    // Leaves up to `settled` are all sealed, and none can appear there any longer. `since` is the time of the first leaf that
    // it adds.
    `CREATE TABLE checkpoints (
      organization_id ${text} NOT NULL, number ${integer} NOT NULL, size ${integer} NOT NULL,
      frontier ${bytes} NOT NULL, at ${integer} NOT NULL, note ${text}, settled ${integer} NOT NULL,
      since ${integer} NOT NULL, PRIMARY KEY (organization_id, number))${keyedTable}`,
    `CREATE VIEW log_leaves AS SELECT s.organization_id AS organization_id, s.number AS number, l.id AS id,
      l.kind AS kind, l.at AS at, l.meta AS meta, l.hash AS hash
      FROM sealed_leaves s LEFT JOIN leaves l
      ON l.organization_id = s.organization_id AND l.sequence = s.sequence`,
  ];
}

function budgets({ text, integer, keyedTable, holdsTable }: SqlDialect): readonly string[] {
  return [
    `CREATE TABLE budgets (
      id ${text} NOT NULL PRIMARY KEY, scope ${text} NOT NULL, unit ${text} NOT NULL,
      amount ${integer} NOT NULL, period ${text} NOT NULL, mode ${text} NOT NULL,
      warn_at ${text} NOT NULL, sequence ${integer} NOT NULL)${keyedTable}`,
    `CREATE TABLE rate_limits (
      id ${text} NOT NULL PRIMARY KEY, scope ${text} NOT NULL, unit ${text} NOT NULL,
      amount ${integer} NOT NULL, period ${text}, burst ${integer} NOT NULL,
      sequence ${integer} NOT NULL)${keyedTable}`,
    // Temporary raises of limits.
    `CREATE TABLE budget_raises (
      budget_id ${text} NOT NULL, id ${text} NOT NULL, unit ${text} NOT NULL,
      amount ${integer} NOT NULL, at ${integer} NOT NULL, until ${integer} NOT NULL, actor ${text},
      sequence ${integer} NOT NULL, PRIMARY KEY (budget_id, id))${keyedTable}`,
    `CREATE TABLE budget_counters (
      budget_id ${text} NOT NULL, subject ${text} NOT NULL, period_start ${integer} NOT NULL,
      unit ${text} NOT NULL, settled ${integer} NOT NULL, held ${integer} NOT NULL CHECK (held >= 0),
      PRIMARY KEY (budget_id, subject, period_start))${keyedTable}`,
    // `settled` is null while the amount is held: the counters can be recomputed from these rows.
    `CREATE TABLE ${holdsTable} (
      organization_id ${text} NOT NULL, step_id ${text} NOT NULL, attempt ${integer} NOT NULL,
      budget_id ${text} NOT NULL, subject ${text} NOT NULL, period_start ${integer} NOT NULL,
      unit ${text} NOT NULL, amount ${integer} NOT NULL, settled ${integer},
      PRIMARY KEY (organization_id, step_id, attempt, budget_id, subject, period_start))${keyedTable}`,
    // Later corrections of an attempt. A counter's ledger is the settled amounts of its holds plus the differences
    // here, for corrections with `held_by`; they stay when Steps are removed. `held_by` is the attempt that took the
    // holds, null if there were none.
    `CREATE TABLE corrections (
      organization_id ${text} NOT NULL, step_id ${text} NOT NULL, id ${text} NOT NULL,
      attempt ${integer} NOT NULL, at ${integer} NOT NULL, actor ${text}, reason ${text} NOT NULL,
      usage ${text} NOT NULL, cost ${integer}, held_by ${integer}, usd_delta ${integer} NOT NULL,
      tokens_delta ${integer} NOT NULL, sequence ${integer} NOT NULL,
      PRIMARY KEY (organization_id, step_id, id))${keyedTable}`,
  ];
}

function usage({ text, integer, bytes, keyedTable }: SqlDialect): readonly string[] {
  return [
    // Sums over Steps by hour, with their callers and without. A fold of Steps adds rows, and so does each correction; no row changes.
    `CREATE TABLE usage_hours (
      organization_id ${text} NOT NULL, detail ${text} NOT NULL, hour ${integer} NOT NULL, id ${text} NOT NULL,
      names ${text} NOT NULL, figures ${bytes} NOT NULL, PRIMARY KEY (organization_id, detail, hour, id))${keyedTable}`,
    `CREATE TABLE usage_marks (
      organization_id ${text} NOT NULL PRIMARY KEY, mark ${text} NOT NULL)${keyedTable}`,
  ];
}
