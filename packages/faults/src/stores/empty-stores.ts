import { DatabaseSync } from "node:sqlite";
import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";
import pg from "pg";

/** An empty store. */
export interface EmptyStore {
  readonly store: Store;
  /** Removes its data. */
  drop(): Promise<void>;
}

/** Opens stores of one kind. */
export interface EmptyStores {
  readonly name: string;
  open(): Promise<EmptyStore>;
  close(): Promise<void>;
}

export const emptyMemoryStores: EmptyStores = {
  name: "memoryStore",
  open: async () => ({ store: memoryStore(), drop: async () => {} }),
  close: async () => {},
};

export const emptySqliteStores: EmptyStores = {
  name: "sqliteStore",
  async open() {
    const client = new DatabaseSync(":memory:");
    return { store: sqliteStore({ client }), drop: async () => client.close() };
  },
  close: async () => {},
};

/** A connection remembers something of each schema that was dropped, which makes the next one slower. So it is replaced. */
const usesPerConnection = 2_000;

/** Opens stores in schemas of one database, over one connection, so concurrent calls run in order. */
export function emptyPostgresStores(url: string): EmptyStores {
  const pool = new pg.Pool({ connectionString: url, max: 1, maxUses: usesPerConnection });
  // The server may stop first.
  pool.on("error", () => {});
  let count = 0;
  return {
    name: "postgresStore",
    async open() {
      // Each schema is used once, because statements prepared for it would accumulate.
      const schema = `fresh_${process.pid}_${++count}`;
      const store = postgresStore({ pool }, { schema, namedStatements: false });
      return {
        store,
        drop: async () => {
          await store.close();
          await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
        },
      };
    },
    close: () => pool.end(),
  };
}
