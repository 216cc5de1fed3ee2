/**
 * `npm run faults -- pgbouncer`: runs the contract of stores through PgBouncer in transaction mode, over 4 connections
 * to the server, without named statements. Needs PgBouncer (on Debian: `apt-get install pgbouncer`).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startPostgres } from "@tollgate/testing/postgres";
import { startPgBouncer } from "./pgbouncer/start-pgbouncer.ts";

const server = await startPostgres();
const bouncer = await startPgBouncer({ server: server.url, connections: 4 });
process.stdout.write(`${bouncer.version} in transaction mode\n`);
const vitest = join(
  dirname(createRequire(import.meta.url).resolve("vitest/package.json")),
  "vitest.mjs",
);
const config = fileURLToPath(new URL("pgbouncer/vitest.config.ts", import.meta.url));
const run = spawn(process.execPath, [vitest, "run", "--config", config], {
  stdio: "inherit",
  env: { ...process.env, TOLLGATE_TEST_PG_URL: bouncer.url },
});
const [code] = await once(run, "exit");
await bouncer.stop();
await server.stop();
process.exit(code === 0 ? 0 : 1);
