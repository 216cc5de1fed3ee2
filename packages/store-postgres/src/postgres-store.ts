import { read, type Schema, text, z } from "@tollgate/core/schemas";
import type { SettleStepResult, StepSettlement, Store } from "@tollgate/core/store";
import {
  correct,
  type Decision,
  openAttempt,
  openStep,
  recordRefusal,
  settleStep,
  type View,
} from "@tollgate/store-engine";
import { createRepositories } from "@tollgate/store-sql";
import pg from "pg";
import type { PostgresPool } from "./database/client.ts";
import { createDatabase, type Database } from "./database/database.ts";
import { postgresDialect } from "./database/postgres-dialect.ts";
import { anyway } from "./database/retry.ts";
import { isSchemaName } from "./database/schema-name.ts";
import { scriptsOn } from "./database/scripts.ts";
import { mapped, promised, type Task } from "./database/task.ts";
import type { DecisionOutcome } from "./driver/driver.ts";
import { createLeases } from "./leases.ts";
import {
  createResponseRepository,
  createSessionRepository,
  reconcile,
  sweepSteps,
} from "./repositories.ts";

/**
 * The location of the database: a `postgres://…` address, for which the store opens up to 10 connections and closes
 * them, or an open pool of `pg` 8 that the caller closes.
 */
export type PostgresSource = { readonly url: string } | { readonly pool: PostgresPool };

/** How a PostgreSQL store keeps its data. */
export interface PostgresStoreOptions {
  /**
   * The schema of its tables, created by `migrate()`: lower-case letters, digits and underscores. Default `tollgate`.
   */
  readonly schema?: string;
  /**
   * The behavior of `migrate()`: `auto` creates or upgrades the schema; `check` changes nothing and rejects unless it is
   * current, for processes whose database user may not change it. Default `auto`.
   */
  readonly migrate?: "auto" | "check";
  /**
   * Whether statements are prepared once per connection. Turn it off behind a PgBouncer older than 1.21 in transaction
   * mode. Default true.
   */
  readonly namedStatements?: boolean;
}

const optionMembers = {
  schema: z.exactOptional(
    text(
      isSchemaName,
      "must be 1 to 48 lower-case letters, digits and underscores, and not begin with pg_ or a digit",
    ),
  ),
  migrate: z.exactOptional(z.enum(["auto", "check"])),
  namedStatements: z.exactOptional(z.boolean()),
};

const optionsSchema: Schema<PostgresStoreOptions> = z.strictObject(optionMembers);

const address = text((url) => /^postgres(?:ql)?:\/\//.test(url), "must be a postgres:// address");

const openedPool = z.custom<PostgresPool>(
  (value) =>
    typeof value === "object" &&
    value !== null &&
    typeof Reflect.get(value, "connect") === "function",
  { error: "must be an open pool of pg" },
);

const poolSource: Schema<PostgresSource> = z.strictObject({ pool: openedPool });
const urlSource: Schema<PostgresSource> = z.strictObject({ url: address });

/** The options of `postgresStore` that are data: the address of the database, and how the store is kept. */
export const postgresAddressSchema: Schema<PostgresStoreOptions & { readonly url: string }> =
  z.strictObject({ url: address, ...optionMembers });

const configured = {
  code: "invalid_configuration",
  noun: "option",
  passThrough: ["pool"],
} as const;

function requireSource(source: PostgresSource): PostgresSource {
  const isPool = typeof source === "object" && source !== null && "pool" in source;
  return read(isPool ? poolSource : urlSource, source, configured);
}

/**
 * Creates a store in a PostgreSQL database (15 or newer), which any number of processes may share, directly or through a
 * pooler in transaction mode. A resolved change is committed. The schema must have been migrated once.
 *
 * The process decides on the rows that it knows, and one function of the schema compares them and writes. A decision on rows
 * that have changed is made again at most twice, then in a transaction that locks them. Up to 64 Steps that arrive together
 * open and settle in one statement; one that fails does not affect the others. No call holds a connection while a stream
 * runs. Up to 256 calls wait for one, each at most 2 seconds. Changes that the server rolls back (deadlock, serialization,
 * lock timeout) or that meet a lost connection run again up to five times; a call to a server that does not answer rejects
 * within 5 seconds.
 *
 * Calls reject with a GatewayError (`step_not_found`, `invalid_argument`) for a caller's mistake, and with an Error that has
 * the cause when the database can't serve. Throws a GatewayError `invalid_configuration` for an option that it doesn't take,
 * with every problem and its path.
 */
export function postgresStore(source: PostgresSource, options: PostgresStoreOptions = {}): Store {
  const database = openDatabase(requireSource(source), read(optionsSchema, options, configured));
  const { driver } = database;
  const shared = createRepositories(scriptsOn(database), postgresDialect);
  const { whileOpening, ...leases } = createLeases(database);
  return {
    contract: 1,
    migrate: (mode) => database.migrate(mode),
    close: () => database.close(),
    status: () => database.status(),
    openStep: (intent) => resultOf(whileOpening(driver.open((view) => openStep(view, intent)))),
    openAttempt: (intent) => resultOf(driver.settle((view) => openAttempt(view, intent))),
    settleStep: (settlement) => {
      const settling = driver.settle((view) => settleOnce(view, settlement));
      return promised(
        mapped(settling, ({ result: { ending, isSame }, isUnsure }) =>
          // An earlier run of this call may have written the settlement that it finds.
          isUnsure && isSame ? { settled: true, outcome: ending.outcome } : ending,
        ),
      );
    },
    correct: (intent) => {
      const { organizationId, stepId: id } = intent;
      const locks = { steps: [{ organizationId, id }] };
      return driver.alone((view) => correct(view, intent), { ...anyway, locks });
    },
    recordRefusal: (refusal) => resultOf(driver.open((view) => recordRefusal(view, refusal))),
    ...shared,
    ...leases,
    budgets: {
      ...shared.budgets,
      reconcile: ({ limit }) => reconcile(database, limit),
    },
    sessions: { ...shared.sessions, ...createSessionRepository(database) },
    steps: { ...shared.steps, sweep: (sweep) => sweepSteps(database, sweep) },
    responses: { ...shared.responses, ...createResponseRepository(database) },
  };
}

/** Settles a Step. If it was settled before, tells whether by this same settlement: another process's has another time. */
function settleOnce(
  view: View,
  settlement: StepSettlement,
): Decision<{ readonly ending: SettleStepResult; readonly isSame: boolean }> {
  const { result: ending, change } = settleStep(view, settlement);
  const { organizationId, stepId, at, outcome } = settlement;
  const found = ending.settled ? null : view.step(organizationId, stepId)?.step;
  const isSame = found?.settledAt === at && found.outcome === outcome;
  return { result: { ending, isSame }, change };
}

function resultOf<Result>(decision: Task<DecisionOutcome<Result>>): Promise<Result> {
  return promised(mapped(decision, ({ result }) => result));
}

function openDatabase(source: PostgresSource, options: PostgresStoreOptions): Database {
  const { schema = "tollgate", migrate = "auto", namedStatements = true } = options;
  const settings = { schema, migrate, namedStatements };
  if ("pool" in source)
    return createDatabase({ ...settings, pool: source.pool, most: null, end: async () => {} });
  const pool = openPool(source.url);
  return createDatabase({ ...settings, pool, most: maxConnections, end: () => pool.end() });
}

/** A pool that belongs to the store. */
interface OpenedPool extends PostgresPool {
  end(): Promise<void>;
}

/** Milliseconds until a new connection must be open, even if the server does not answer. */
const connectTimeout = 1_800;
const maxConnections = 10;

/** Opens nothing yet: connections open when they are needed. */
function openPool(url: string): OpenedPool {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: "tollgate",
    max: maxConnections,
    connectionTimeoutMillis: connectTimeout,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
  });
  // A connection may still report an error while it closes, even after `end()`, and nothing else would listen.
  pool.on("error", () => {});
  return pool;
}
