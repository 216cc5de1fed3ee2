/** `npm run faults -- histories --runs 500 --seed 7`: plays random histories on all three stores and compares them. */
import { startPostgres } from "@tollgate/testing/postgres";
import fc from "fast-check";
import { readNumbers } from "./arguments.ts";
import { someCommands } from "./histories/command.ts";
import { difference, playOnEach } from "./histories/play.ts";
import {
  emptyMemoryStores,
  emptyPostgresStores,
  emptySqliteStores,
} from "./stores/empty-stores.ts";

const { runs, seed } = readNumbers({ runs: 500, seed: Date.now() % 1_000_000_000 });
const server = await startPostgres();
const postgres = emptyPostgresStores(server.url);
const started = performance.now();
/** How often each command and each status occurred. */
const counts = new Map<string, number>();
const count = (name: string): void => void counts.set(name, (counts.get(name) ?? 0) + 1);

const agreement = fc.asyncProperty(someCommands, async (commands) => {
  const kinds = [emptyMemoryStores, emptySqliteStores, postgres];
  const [memory = [], ...others] = await playOnEach(kinds, commands);
  for (const { type } of commands) count(type);
  for (const [, status] of JSON.stringify(memory).matchAll(/"status":(\d{3}),/g))
    count(`status ${status}`);
  for (const other of others) {
    const problem = difference(memory, other);
    if (problem !== null) throw new Error(problem);
  }
});
const result = await fc.check(agreement, { numRuns: runs, seed });
await postgres.close();
await server.stop();

const seconds = Math.round((performance.now() - started) / 1_000);
process.stdout.write(`${result.numRuns} histories in ${seconds} s, seed ${seed}\n`);
for (const [name, times] of [...counts].sort(([one], [other]) => one.localeCompare(other)))
  process.stdout.write(`  ${name.padEnd(16)} ${times}\n`);
process.stdout.write(result.failed ? `${fc.defaultReportMessage(result)}\n` : "all alike\n");
process.exit(result.failed ? 1 : 0);
