/** A store in a SQLite file. */
export type { SqliteClient, SqliteStatement } from "./connection.ts";
export { type SqliteSource, sqliteFileSchema, sqliteStore } from "./sqlite-store.ts";
