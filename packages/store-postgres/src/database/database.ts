import { randomInt } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { StoreStatus } from "@tollgate/core/store";
import { commitIn } from "../driver/commit.ts";
import { byIndexes } from "../driver/commit-function.ts";
import { createDriver, type Driver, type DriverTransport } from "../driver/driver.ts";
import { createAcquire } from "./acquire.ts";
import type { PostgresPool } from "./client.ts";
import {
  type Connection,
  createConnection,
  createStatements,
  queryTimeouts,
} from "./connection.ts";
import { isLockTimeout, PostgresFailure } from "./failure.ts";
import { migrate, requireSchema } from "./migrate.ts";
import { anyway, createPause, createRetry, type Repeatable, type RetryTiming } from "./retry.ts";
import { createQualify } from "./schema-name.ts";
import { ending, promised, type Task, taskOf } from "./task.ts";
import { createTransaction, inTransaction, type Transaction, withSettings } from "./transaction.ts";

/** The database as the verbs and the repositories use it. */
export interface Database {
  readonly schema: string;
  /** Whether the store may create and drop tables. */
  readonly mayRearrange: boolean;
  migrate(mode?: "auto" | "check"): Promise<void>;
  /** Runs a change in one transaction, and again as a whole if a retry can help. Resolves when it is on disk. */
  write<Result>(
    change: (transaction: Transaction) => Promise<Result>,
    repeatable: Repeatable,
  ): Promise<Result>;
  /** Carries out the decisions of the rules. */
  readonly driver: Driver;
  /**
   * Changes the tables themselves in one transaction, which may take minutes. It waits at most a second for a table's
   * lock, because every request waits behind it. Returns null without any change if that was too short.
   */
  rearrange<Result>(
    change: (transaction: Transaction, connection: Connection) => Promise<Result>,
  ): Promise<Result | null>;
  /** Runs work in one transaction whose statements use indexes only, and again as a whole if a retry can help. */
  byIndex<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result>;
  /** Runs statements, each of which sees the state committed before it. */
  read<Result>(query: (connection: Connection) => Promise<Result>): Promise<Result>;
  /** Waits for running calls. */
  close(): Promise<void>;
  status(): StoreStatus;
}

/** How a database is opened. */
export interface DatabaseOptions {
  readonly pool: PostgresPool;
  readonly schema: string;
  readonly migrate: "auto" | "check";
  readonly namedStatements: boolean;
  /** The most connections of the pool; null if it belongs to the application. */
  readonly most: number | null;
  /** Ends the pool if it belongs to the store. */
  readonly end: () => Promise<void>;
  readonly chance?: RetryTiming;
}

const rearrangeTimeouts = `SET LOCAL statement_timeout = ${queryTimeouts.migration}; SET LOCAL lock_timeout = 1000`;

const byIndex = withSettings(byIndexes);

const realChance: RetryTiming = { random: () => randomInt(1_000) / 1_000, pause };

export function createDatabase(options: DatabaseOptions): Database {
  const { pool, schema, chance = realChance } = options;
  const qualify = createQualify(schema);
  const commit = commitIn(schema);
  const statements = createStatements({ qualify, namedStatements: options.namedStatements });
  const pauseAfter = createPause(chance);
  const tryAgain = createRetry(pauseAfter);
  const pooled = createAcquire(pool);
  // The pool replaces an idle connection that breaks. Without a listener, its error event would end the host process.
  const ignore = (): void => {};
  pool.on("error", ignore);
  let inUse = 0;
  let running = 0;
  let end = (): void => {};
  let checked: Promise<void> | null = null;
  let isReady = false;
  let closing: Promise<void> | null = null;

  const lend =
    <Result>(commits: boolean, use: (connection: Connection) => Task<Result>): Task<Result> =>
    (receiver) =>
      pooled.acquire({
        resolve(client) {
          inUse++;
          const connection = createConnection(client, { statements, qualify, commits });
          const end = (): void => {
            inUse--;
            client.release();
          };
          ending((user) => use(connection)(user), end, receiver);
        },
        reject: receiver.reject,
      });
  const withConnection = <Result>(
    commits: boolean,
    use: (connection: Connection) => Promise<Result>,
  ): Promise<Result> => promised(lend(commits, (connection) => taskOf(() => use(connection))));
  const transact = <Result>(
    change: (transaction: Transaction, connection: Connection) => Promise<Result>,
  ): Promise<Result> =>
    withConnection(false, (connection) => {
      const transaction = createTransaction(connection, schema);
      return inTransaction(connection, () => change(transaction, connection));
    });
  const whileOpen =
    <Result>(task: Task<Result>): Task<Result> =>
    (receiver) => {
      if (closing) return receiver.reject(new PostgresFailure("the store is closed"));
      running++;
      const ended = (): void => {
        if (--running === 0) end();
      };
      ending(task, ended, receiver);
    };
  const check = (): Promise<void> =>
    tryAgain(
      () => withConnection(false, (connection) => requireSchema(connection, schema)),
      anyway,
    );
  const migrateSchema = (): Promise<void> =>
    tryAgain(() => transact((_, connection) => migrate(connection, schema, commit.create)), anyway);
  const ready = (): Promise<void> => {
    checked ??= check().then(
      () => {
        isReady = true;
      },
      (error: unknown) => {
        checked = null;
        throw error;
      },
    );
    return checked;
  };
  const onceReady = <Result>(task: Task<Result>): Task<Result> =>
    whileOpen(isReady ? task : taskOf(() => ready().then(() => promised(task))));
  const call = <Result>(work: () => Promise<Result>): Promise<Result> =>
    promised(onceReady(taskOf(work)));
  const transactByIndex: DriverTransport["transact"] = (work) =>
    withConnection(false, (connection) =>
      inTransaction(connection, () => work(connection), byIndex),
    );
  const createdDriver = createDriver({
    commit,
    tryAgain,
    pauseAfter,
    withConnection: (use) => lend(true, use),
    transact: transactByIndex,
  });
  const driver: Driver = {
    open: (decide) => onceReady(createdDriver.open(decide)),
    settle: (decide) => onceReady(createdDriver.settle(decide)),
    alone: (decide, how) => call(() => createdDriver.alone(decide, how)),
    ask: (question) => call(() => createdDriver.ask(question)),
    waiting: () => createdDriver.waiting(),
  };

  return {
    schema,
    driver,
    mayRearrange: options.migrate === "auto",
    migrate: (mode) =>
      promised(
        whileOpen(taskOf(options.migrate === "check" || mode === "check" ? check : migrateSchema)),
      ),
    write: (change, repeatable) => call(() => tryAgain(() => transact(change), repeatable)),
    rearrange: (change) =>
      call(() =>
        tryAgain(
          () =>
            transact(async (transaction, connection) => {
              await connection.exec(rearrangeTimeouts);
              return change(transaction, connection);
            }).catch(unlessBusy),
          anyway,
        ),
      ),
    byIndex: (work) => call(() => tryAgain(() => transactByIndex(work), anyway)),
    read: (query) => call(() => tryAgain(() => withConnection(true, query), anyway)),
    close() {
      closing ??= new Promise<void>((resolve) => {
        end = resolve;
        if (running === 0) end();
      }).then(async () => {
        await options.end();
        pool.off("error", ignore);
      });
      return closing;
    },
    status: () => ({
      waiting: pooled.waiting() + driver.waiting(),
      inUse,
      most: options.most,
    }),
  };
}

function unlessBusy(error: unknown): null {
  if (isLockTimeout(error)) return null;
  throw error;
}
