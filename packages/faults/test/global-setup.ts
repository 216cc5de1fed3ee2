import type { TestProject } from "vitest/node";
import { startPostgres } from "../../testing/src/postgres.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The address of the PostgreSQL server of these tests. */
    readonly postgresUrl: string;
  }
}

/** Starts a server for the run, or uses the one that `TOLLGATE_TEST_PG_URL` names. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const url = process.env["TOLLGATE_TEST_PG_URL"];
  if (url !== undefined) {
    project.provide("postgresUrl", url);
    return async () => {};
  }
  const server = await startPostgres();
  project.provide("postgresUrl", server.url);
  return () => server.stop();
}
