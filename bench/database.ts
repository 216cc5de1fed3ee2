import { readdirSync, readFileSync } from "node:fs";
import { startPostgres } from "@tollgate/testing/postgres";
import pg from "pg";
import { cpuMicroseconds } from "./process-figures.ts";

/** A PostgreSQL server that the targets share, each with a separate schema. */
export interface Database {
  readonly url: string;
  /** CPU time of all processes of the server so far, in microseconds. */
  cpuMicroseconds(): number;
  /** Removes a schema and its content. */
  drop(schema: string): Promise<void>;
  stop(): Promise<void>;
}

/** Starts PostgreSQL from its npm package. It flushes every commit to disk, as production does. */
export async function startDatabase(): Promise<Database> {
  const server = await startPostgres({ fsync: true });
  const first = await parentOf(server.url);
  return {
    url: server.url,
    cpuMicroseconds: () =>
      cpuMicroseconds(first, { withEnded: true }) +
      childrenOf(first).reduce((sum, pid) => sum + cpuMicroseconds(pid), 0),
    async drop(schema) {
      await withClient(server.url, (client) =>
        client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`),
      );
    },
    stop: () => server.stop(),
  };
}

/** The server's first process, which starts a process for each connection. */
async function parentOf(url: string): Promise<number> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    const stat = readFileSync(`/proc/${rows[0]?.pid}/stat`, "latin1");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  });
}

function childrenOf(parent: number): readonly number[] {
  return readdirSync(`/proc/${parent}/task`).flatMap((thread) =>
    readFileSync(`/proc/${parent}/task/${thread}/children`, "latin1")
      .split(" ")
      .filter((pid) => pid !== "")
      .map(Number),
  );
}

async function withClient<Result>(
  url: string,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
