import { existsSync } from "node:fs";
import { read, type Schema, text, z } from "@tollgate/core/schemas";
import type { Store } from "@tollgate/core/store";
import {
  correct,
  type Decision,
  openAttempt,
  openStep,
  recordRefusal,
  settleStep,
  sweepSteps,
  type View,
} from "@tollgate/store-engine";
import { createConditions, createRepositories } from "@tollgate/store-sql";
import type { SqliteClient } from "./database/client.ts";
import { createDatabase } from "./database/database.ts";
import { openFile } from "./database/open-file.ts";
import { scriptDatabaseOn } from "./database/scripts.ts";
import { sqliteDialect } from "./database/sqlite-dialect.ts";
import { createDecisionRepository } from "./repositories/decision-repository.ts";
import { createResponseRepository } from "./repositories/response-repository.ts";
import { createSessionRepository } from "./repositories/session-repository.ts";
import { lapsedSteps, renewLease } from "./verbs/leases.ts";

/** Where the database is: a file, created when it is missing, or an open database that the caller closes. */
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
 * Creates a store in one SQLite file, which several processes of one machine may share. A resolved change is on disk
 * (write-ahead log, `synchronous=FULL`); changes that arrive together share one commit. The file is opened on first
 * use, and `migrate()` must have run on it once.
 *
 * `client` is an open database of `node:sqlite` or better-sqlite3 that nothing else uses; `close()` leaves it open.
 *
 * Calls reject with a GatewayError (`step_not_found`, `invalid_argument`) for what the caller got wrong, and with an
 * Error that says what is the matter when the database cannot serve: SQLite older than 3.51.3, the schema of a newer
 * release, a file that is not a database, was removed or replaced, is read-only or full, or stayed locked by another
 * process for 2 seconds. Throws a GatewayError `invalid_configuration` for a source that is none.
 */
export function sqliteStore(options: SqliteSource): Store {
  const source = requireSource(options);
  const database = createDatabase(
    "client" in source
      ? { open: () => source.client, isMissing: () => false, ownsClient: false }
      : {
          open: () => openFile(source.filename),
          isMissing: () => !existsSync(source.filename),
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
    openStep: (intent) => carryOut((view) => openStep(view, intent)),
    openAttempt: (intent) => carryOut((view) => openAttempt(view, intent)),
    settleStep: (settlement) => carryOut((view) => settleStep(view, settlement)),
    correct: (intent) => carryOut((view) => correct(view, intent)),
    recordRefusal: (refusal) => carryOut((view) => recordRefusal(view, refusal)),
    renewLease: (renewal) => database.write((transaction) => renewLease(transaction, renewal)),
    lapsedSteps: (query) => database.read((connection) => lapsedSteps(connection, query)),
    ...shared,
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
    responses: createResponseRepository(database),
  };
}
