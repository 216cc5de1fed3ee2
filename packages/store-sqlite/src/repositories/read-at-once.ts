import type { SqliteConnection } from "../database/connection.ts";
import type { Database } from "../database/database.ts";

/** Runs several reads on one state of the database, even if another process writes meanwhile. */
export function readSnapshot<Result>(
  database: Database,
  read: (connection: SqliteConnection) => Result,
): Promise<Result> {
  return database.read((connection) => {
    connection.exec("BEGIN");
    try {
      return read(connection);
    } finally {
      connection.exec("COMMIT");
    }
  });
}
