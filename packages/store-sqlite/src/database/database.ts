import type { SqliteClient } from "./client.ts";
import { createConnection, type SqliteConnection } from "./connection.ts";
import { storeFailure } from "./failure.ts";
import { createGroupCommit, type WriteOperation } from "./group-commit.ts";
import { createLogCleaner } from "./log-cleaner.ts";
import { migrate, requireSchema } from "./migrate.ts";
import { createTransactions, type RunInTransaction } from "./transaction.ts";
import { waitWhileBusy } from "./wait-while-busy.ts";

/** The one connection of a store, opened when it is first needed. */
export interface Database {
  migrate(mode?: "auto" | "check"): Promise<void>;
  /** Resolves when the operation's transaction is on disk; operations queued together share one. */
  write<Result>(operation: WriteOperation<Result>): Promise<Result>;
  /** Writes what deletes content; soon after, the deleted bytes leave the write-ahead log too. */
  erase<Result>(operation: WriteOperation<Result>): Promise<Result>;
  read<Result>(query: (connection: SqliteConnection) => Result): Promise<Result>;
  close(): Promise<void>;
}

/** Where the connection comes from, and whether the store closes it. */
export interface ClientSource {
  readonly open: () => SqliteClient;
  /** Whether opening would create a database. */
  readonly isMissing: () => boolean;
  readonly ownsClient: boolean;
}

export function createDatabase({ open, isMissing, ownsClient }: ClientSource): Database {
  let opened: SqliteConnection | null = null;
  let inTransaction: RunInTransaction | null = null;
  let isCurrent = false;
  let closed = false;

  const connect = (): SqliteConnection => {
    if (closed) throw storeFailure("the store is closed");
    opened ??= connectTo(open, ownsClient);
    return opened;
  };
  const ready = (): SqliteConnection => {
    const connection = connect();
    if (!isCurrent) requireSchema(connection);
    isCurrent = true;
    return connection;
  };
  const transact: RunInTransaction = (work) => {
    inTransaction ??= createTransactions(ready());
    return inTransaction(work);
  };
  const groupCommit = createGroupCommit({
    immediately: transact,
    whenUnlocked: (work) => waitWhileBusy(() => transact(work)),
  });

  const write = <Result>(operation: WriteOperation<Result>): Promise<Result> =>
    closed ? Promise.reject(storeFailure("the store is closed")) : groupCommit.write(operation);
  const log = createLogCleaner(() => opened);

  return {
    async migrate(mode = "auto") {
      // Opening a file that is missing would create it.
      if (mode === "check" && !opened && isMissing())
        throw storeFailure("there is no database yet");
      await waitWhileBusy(() => (mode === "check" ? requireSchema : migrate)(connect()));
    },
    write,
    async erase(operation) {
      const result = await write(operation);
      log.cleanSoon();
      return result;
    },
    read: (query) => waitWhileBusy(() => query(ready())),
    async close() {
      await groupCommit.drained();
      closed = true;
      log.close();
      if (ownsClient) opened?.close();
      [opened, inTransaction] = [null, null];
    },
  };
}

function connectTo(open: () => SqliteClient, ownsClient: boolean): SqliteConnection {
  const client = open();
  try {
    return createConnection(client);
  } catch (error) {
    if (ownsClient) client.close();
    throw error;
  }
}
