import type { SqlValue } from "@tollgate/store-sql";

/**
 * An open SQLite database, as `node:sqlite` and better-sqlite3 have it. It must be for the store alone: a transaction
 * of the application on the same connection would break the store's.
 */
export interface SqliteClient {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}

/** A prepared statement of a SqliteClient. */
export interface SqliteStatement {
  run(...parameters: SqlValue[]): { readonly changes: number | bigint };
  get(...parameters: SqlValue[]): unknown;
  all(...parameters: SqlValue[]): unknown[];
}
