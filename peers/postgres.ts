// Runs the store contract on the oldest PostgreSQL that the store takes: `npm run test:postgres-15`. That server has a
// lock file of its own, so that the checkout stays light without it.
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { startPostgres } from "@tollgate/testing/postgres";

const directory = `${import.meta.dirname}/postgres-15`;
const more = process.argv.slice(2);
const root = resolve(import.meta.dirname, "..");

execFileSync("npm", ["ci", "--ignore-scripts"], { cwd: directory, stdio: "inherit" });
const server = await startPostgres({ installedIn: directory });
try {
  const suites = ["/store-contract.test", "migrations", "partitions", "together"];
  const one = ["--maxWorkers", "1"];
  execFileSync(
    "npx",
    ["vitest", "run", "--project", "store-postgres", ...one, ...suites, ...more],
    {
      cwd: root,
      env: { ...process.env, TOLLGATE_TEST_PG_URL: server.url },
      stdio: "inherit",
    },
  );
} finally {
  await server.stop();
}
