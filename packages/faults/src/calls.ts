/**
 * `npm run faults -- calls`: makes each call of the store fail in every scenario on all three stores: before and after
 * its commit, once and from then on. Also lets the client leave during the call.
 */
import { startPostgres } from "@tollgate/testing/postgres";
import { scenarios } from "./single-faults/scenarios.ts";
import { runEveryFault } from "./single-faults/trial.ts";
import {
  emptyMemoryStores,
  emptyPostgresStores,
  emptySqliteStores,
} from "./stores/empty-stores.ts";

const server = await startPostgres();
const postgres = emptyPostgresStores(server.url);
let total = 0;
const failures: string[] = [];
for (const stores of [emptyMemoryStores, emptySqliteStores, postgres]) {
  const started = performance.now();
  let faults = 0;
  for (const scenario of scenarios) {
    const result = await runEveryFault(stores, scenario);
    faults += result.faults;
    failures.push(...result.problems.map((problem) => `${stores.name}: ${problem}`));
  }
  total += faults;
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  process.stdout.write(`${stores.name.padEnd(14)} ${faults} faults in ${seconds} s\n`);
}
await postgres.close();
await server.stop();
for (const failure of failures) process.stdout.write(`  ${failure}\n`);
process.stdout.write(`${total} faults, ${failures.length} failures\n`);
process.exit(failures.length === 0 && total > 0 ? 0 : 1);
