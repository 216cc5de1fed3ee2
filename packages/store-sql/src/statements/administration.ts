import { budgetRows, raiseRows, rateLimitRows } from "../rows/budget-row.ts";
import { keyRows } from "../rows/key-row.ts";
import { insertInto } from "../statement.ts";
import { columnsOf } from "../tables.ts";

const keysOwn = keyRows.columns.map((column) => `k.${column}`).join(", ");

/** Statements on keys, secrets, budgets and the store's own counters. */
export const administrationStatements = {
  readState: "SELECT budgets_version FROM store_state WHERE id = 1",
  policyVersion: "SELECT policy_version FROM store_state WHERE id = 1",
  notePolicy: "UPDATE store_state SET policy_version = :policy_version WHERE id = 1",
  insertOrganization: `${insertInto("organizations", columnsOf("organizations"))} ON CONFLICT DO NOTHING`,
  cursorSecret: "SELECT cursor_secret FROM store_state WHERE id = 1",
  organizations: "SELECT id FROM organizations WHERE id > :after ORDER BY id LIMIT :limit",
  insertKey: `${insertInto("api_keys", columnsOf("api_keys"))} ON CONFLICT DO NOTHING`,
  updateKey: `UPDATE api_keys SET label = :label, prefix = :prefix,
      default_data_class = :default_data_class, minimum_data_class = :minimum_data_class,
      models = :models, aliases = :aliases, leading_system = :leading_system,
      expires_at = :expires_at, revoked_at = :revoked_at, version = :version
    WHERE organization_id = :organization_id AND id = :id`,
  touchKey: `UPDATE api_keys SET last_used_at = :at
    WHERE organization_id = :organization_id AND id = :id
      AND (last_used_at IS NULL OR last_used_at < :at)`,
  secretHolder: "SELECT organization_id, key_id FROM key_secrets WHERE digest = :digest",
  insertSecret: insertInto("key_secrets", columnsOf("key_secrets")),
  endSecrets: `UPDATE key_secrets SET expires_at = :at
    WHERE organization_id = :organization_id AND key_id = :id
      AND (expires_at IS NULL OR expires_at > :at)`,
  keyById: `SELECT ${keyRows.columns.join(", ")} FROM api_keys
    WHERE organization_id = :organization_id AND id = :id`,
  keyWithoutSecret: `SELECT ${keysOwn}, o.salt
    FROM api_keys k JOIN organizations o ON o.id = k.organization_id
    WHERE k.organization_id = :organization_id AND k.user_id = :user_id AND k.label = :label
      AND k.prefix = ''`,
  keyByDigest: `SELECT ${keysOwn}, o.salt, d.expires_at AS secret_ends_at
    FROM key_secrets d JOIN api_keys k
      ON k.organization_id = d.organization_id AND k.id = d.key_id
    JOIN organizations o ON o.id = d.organization_id
    WHERE d.digest = :digest AND (d.expires_at IS NULL OR d.expires_at > :at)`,
  budgets: `SELECT ${budgetRows.columns.join(", ")} FROM budgets ORDER BY sequence`,
  budget: `SELECT ${budgetRows.columns.join(", ")} FROM budgets WHERE id = :id`,
  insertBudget: `${insertInto("budgets", columnsOf("budgets"))} ON CONFLICT DO NOTHING`,
  updateBudget: `UPDATE budgets SET scope = :scope, unit = :unit, amount = :amount,
      period = :period, mode = :mode, warn_at = :warn_at WHERE id = :id`,
  removeBudget: "DELETE FROM budgets WHERE id = :id",
  rateLimits: `SELECT ${rateLimitRows.columns.join(", ")} FROM rate_limits ORDER BY sequence`,
  rateLimit: `SELECT ${rateLimitRows.columns.join(", ")} FROM rate_limits WHERE id = :id`,
  insertRateLimit: insertInto("rate_limits", columnsOf("rate_limits")),
  updateRateLimit: `UPDATE rate_limits SET scope = :scope, unit = :unit, amount = :amount,
      period = :period, burst = :burst WHERE id = :id`,
  removeRateLimit: "DELETE FROM rate_limits WHERE id = :id",
  /** Budgets and rate limits share one set of ids, because counters and errors name either. */
  holdsId: `SELECT id FROM budgets WHERE id = :id
    UNION ALL SELECT id FROM rate_limits WHERE id = :id`,
  raises: `SELECT ${raiseRows.columns.join(", ")} FROM budget_raises ORDER BY sequence`,
  insertRaise: `${insertInto("budget_raises", columnsOf("budget_raises"))} ON CONFLICT DO NOTHING`,
  raisesLeft: `SELECT count(*) AS raises FROM budget_raises
    WHERE budget_id = :budget_id AND until > :at`,
  removeRaise: "DELETE FROM budget_raises WHERE budget_id = :budget_id AND id = :id",
  forgetRaises: "DELETE FROM budget_raises WHERE budget_id = :budget_id AND until <= :at",
} as const;
