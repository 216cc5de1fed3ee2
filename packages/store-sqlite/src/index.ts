/** The store in a SQLite file. */
export type { SqliteClient, SqliteStatement } from "./database/client.ts";
export { type SqliteSource, sqliteFileSchema, sqliteStore } from "./sqlite-store.ts";
