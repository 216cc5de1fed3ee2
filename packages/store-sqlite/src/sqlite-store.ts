import { read, type Schema, text, z } from "@tollgate/core/schemas";
import type { Store } from "@tollgate/core/store";
import {
  correct,
  type Decision,
  openAttempt,
  openStep,
  reconcile,
  recordRefusal,
  settleStep,
  sweepSteps,
  type View,
} from "@tollgate/store-engine";
import { createConditions, createRepositories } from "@tollgate/store-sql";
import { missingFile, openFile, type SqliteClient } from "./connection.ts";
import { createDatabase } from "./database.ts";
import { ledgerOf } from "./ledger.ts";
import {
  createDecisionRepository,
  createResponseRepository,
  createSessionRepository,
  readSnapshot,
  scriptDatabaseOn,
} from "./repositories.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";

/** The database: a file, which is created if missing, or an open database, which the caller closes. */
export type SqliteSource = { readonly filename: string } | { readonly client: SqliteClient };

const openDatabase = z.custom<SqliteClient>(
  (value) =>
    typeof value === "object" &&
    value !== null &&
    ["exec", "prepare", "close"].every((name) => typeof Reflect.get(value, name) === "function"),
  { error: "must be an open database of node:sqlite or better-sqlite3" },
);

const clientSource: Schema<SqliteSource> = z.strictObject({ client: openDatabase });
/** The options of `sqliteStore` that are data: the file. */
export const sqliteFileSchema: Schema<Extract<SqliteSource, { filename: string }>> = z.strictObject(
  {
    filename: text((name) => name !== "" && !name.includes("\0"), "must be the path of a file"),
  },
);

function requireSource(options: SqliteSource): SqliteSource {
  const isClient = typeof options === "object" && options !== null && "client" in options;
  const schema: Schema<SqliteSource> = isClient ? clientSource : sqliteFileSchema;
  return read(schema, options, {
    code: "invalid_configuration",
    noun: "option",
    passThrough: ["client"],
  });
}

/**
 * Creates a store in one SQLite file, which several processes on one machine may share. When a write resolves, it is on disk
 * (write-ahead log, `synchronous=FULL`); concurrent writes share a commit. The store opens the file on first use. Call
 * `migrate()` first.
 *
 * `client` is an open database of `node:sqlite` or better-sqlite3 that nothing else uses. `close()` leaves it open.
 *
 * Calls reject with a GatewayError (`step_not_found`, `invalid_argument`) for a caller's mistake, and with an Error that
 * names the problem if the database can't serve. Possible problems are a SQLite older than 3.51.3, a schema from a newer
 * release, and a file that isn't a database, is read-only, or was removed or replaced. A full disk is another, and so is
 * another process that kept the database locked for 2 seconds. Throws a GatewayError `invalid_configuration` for an invalid
 * source.
 */
export function sqliteStore(options: SqliteSource): Store {
  const source = requireSource(options);
  const database = createDatabase(
    "client" in source
      ? { open: () => source.client, missingFile: () => null, ownsClient: false }
      : {
          open: () => openFile(source.filename),
          missingFile: () => missingFile(source.filename),
          ownsClient: true,
        },
  );
  const shared = createRepositories(scriptDatabaseOn(database), sqliteDialect);
  const conditions = createConditions(sqliteDialect);
  const carryOut = <Result>(decide: (view: View) => Decision<Result>): Promise<Result> =>
    database.write((transaction) => transaction.carryOut(decide));
  return {
    contract: 1,
    migrate: (mode) => database.migrate(mode),
    close: () => database.close(),
    status: () => database.status(),
    openStep: (intent) => carryOut((view) => openStep(view, intent)),
    openAttempt: (intent) => carryOut((view) => openAttempt(view, intent)),
    settleStep: (settlement) => carryOut((view) => settleStep(view, settlement)),
    correct: (intent) => carryOut((view) => correct(view, intent)),
    recordRefusal: (refusal) => carryOut((view) => recordRefusal(view, refusal)),
    ...shared,
    budgets: {
      ...shared.budgets,
      reconcile: (query) =>
        reconcile(
          ledgerOf((read) => readSnapshot(database, read)),
          query,
        ),
    },
    sessions: {
      ...shared.sessions,
      ...createSessionRepository(database, conditions, shared.sessions.list),
    },
    steps: {
      ...shared.steps,
      sweep: (sweep) =>
        database.erase((transaction) => transaction.carryOut((view) => sweepSteps(view, sweep))),
    },
    decisions: createDecisionRepository(database, conditions),
    responses: { ...shared.responses, ...createResponseRepository(database) },
  };
}
