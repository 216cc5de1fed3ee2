import pg from "pg";
import type { PostgresPool } from "./client.ts";

/** A pool of the store's own. */
export interface OpenedPool extends PostgresPool {
  end(): Promise<void>;
}

/** Milliseconds until a new connection must stand; of a server that does not answer at all. */
const longestConnect = 1_800;
const mostConnections = 10;

/** Opens nothing yet: connections are made as they are needed. */
export function openPool(url: string): OpenedPool {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: "tollgate",
    max: mostConnections,
    connectionTimeoutMillis: longestConnect,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
  });
  // Even after `end()` a connection that closes may still have something to say, and nobody else would hear it.
  pool.on("error", () => {});
  return pool;
}
