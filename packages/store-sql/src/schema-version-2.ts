import { changesAlone } from "./changes-alone.ts";
import type { SqlDialect } from "./dialect.ts";

/** What the second version adds to the first, one function for each thing it brings. */
export function schemaVersion2(dialect: SqlDialect): readonly string[] {
  return [
    ...connections(dialect),
    ...corrections(dialect),
    ...keys(dialect),
    ...erasures(dialect),
    ...budgetRaises(dialect),
    ...changes(dialect),
  ];
}

/** Sealed credentials of customer-owned gateways, found and listed by their key alone. */
function connections({ text, integer, bytes, keyedTable }: SqlDialect): readonly string[] {
  return [
    `CREATE TABLE connections (
      organization_id ${text} NOT NULL, gateway ${text} NOT NULL, id ${text} NOT NULL,
      created_at ${integer} NOT NULL, updated_at ${integer} NOT NULL,
      key_id ${text} NOT NULL, wrapped_key ${bytes} NOT NULL, credential ${bytes} NOT NULL,
      PRIMARY KEY (organization_id, gateway))${keyedTable}`,
  ];
}

/**
 * What was said later of an attempt. The ledger of a counter is what its holds settled and, for those of `held_by`, the
 * differences here: they stay when Steps go. `held_by` is the attempt that took the holds; null where none were taken.
 */
function corrections({ text, integer, keyedTable }: SqlDialect): readonly string[] {
  return [
    `CREATE TABLE corrections (
      organization_id ${text} NOT NULL, step_id ${text} NOT NULL, id ${text} NOT NULL,
      attempt ${integer} NOT NULL, at ${integer} NOT NULL, actor ${text}, reason ${text} NOT NULL,
      usage ${text} NOT NULL, cost ${integer}, held_by ${integer}, usd_delta ${integer} NOT NULL,
      tokens_delta ${integer} NOT NULL, sequence ${integer} NOT NULL,
      PRIMARY KEY (organization_id, step_id, id))${keyedTable}`,
  ];
}

/** A version of each key, one key without a secret for each user and label, and a user's keys in the order of lists. */
function keys({ integer }: SqlDialect): readonly string[] {
  return [
    `ALTER TABLE api_keys ADD COLUMN version ${integer} NOT NULL DEFAULT 0`,
    `CREATE UNIQUE INDEX api_keys_without_secret ON api_keys (organization_id, user_id, label)
      WHERE prefix = ''`,
    // For lists, which say what is true of every row: PostgreSQL would take this for the look-up of a request's key, too.
    `CREATE INDEX api_keys_by_user ON api_keys (organization_id, user_id, created_at, sequence)
      WHERE sequence >= 0`,
  ];
}

/** Up to which Session, in the order of their updates, each organization's transcripts were looked at for erasure. */
function erasures({ text, integer, keyedTable }: SqlDialect): readonly string[] {
  return [
    `CREATE TABLE erasures (
      organization_id ${text} NOT NULL PRIMARY KEY, updated ${integer} NOT NULL)${keyedTable}`,
  ];
}

/** At which parts of its limit a budget warns, as JSON, and temporary raises of limits. */
function budgetRaises({ text, integer, keyedTable }: SqlDialect): readonly string[] {
  return [
    `ALTER TABLE budgets ADD COLUMN warn_at ${text} NOT NULL DEFAULT '[0.8,1]'`,
    `CREATE TABLE budget_raises (
      budget_id ${text} NOT NULL, id ${text} NOT NULL, unit ${text} NOT NULL,
      amount ${integer} NOT NULL, at ${integer} NOT NULL, until ${integer} NOT NULL, actor ${text},
      sequence ${integer} NOT NULL, PRIMARY KEY (budget_id, id))${keyedTable}`,
  ];
}

/** The few leaves of administrative changes in the order of their lists, and the policy that decided last. */
function changes({ text }: SqlDialect): readonly string[] {
  return [
    `CREATE INDEX leaves_changes ON leaves (organization_id, at, sequence) WHERE ${changesAlone}`,
    `CREATE INDEX leaves_changes_of_all ON leaves (at, sequence) WHERE ${changesAlone}`,
    `ALTER TABLE store_state ADD COLUMN policy_version ${text}`,
  ];
}
