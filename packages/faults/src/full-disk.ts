/**
 * `npm run faults -- full-disk`, as root: fills the disk of PostgreSQL while two gateway processes send requests
 * without a pause. Checks that they answer 503 and keep running, and that acknowledged Steps exist once the disk has
 * space again.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { checkBudgets, checkEvidence, checkQuiet, checkUsage } from "@tollgate/testing";
import { startPostgres } from "@tollgate/testing/postgres";
import { createSecrets } from "./load/keys.ts";
import { lostAnswers, readLedger } from "./load/read-ledger.ts";
import { startWorkers } from "./load/workers.ts";
import { openDatabase } from "./stores/database-location.ts";

const organizationId = "acme";
const budgetUsd = 1_000;

if (process.getuid?.() !== 0) throw new Error("Run this as root: it mounts a small disk.");
const disk = mkdtempSync(join(tmpdir(), "tollgate-disk-"));
execFileSync("mount", ["-t", "tmpfs", "-o", "size=320m,mode=0755", "tmpfs", disk]);
process.once("exit", () => {
  execFileSync("umount", ["--lazy", disk]);
  rmdirSync(disk);
});
// The server's folder is created in the folder for temporary files.
process.env["TMPDIR"] = disk;
const server = await startPostgres({ fsync: true });
const place = { url: server.url, schema: "tollgate" };
const secrets = await createSecrets(place, { organizationId, count: 2 });
const workers = await startWorkers(place, { processes: 2, usd: budgetUsd });
await workers.begin({ secrets, concurrency: 4, refusals: 1 });
await pause(2_000);

const filler = join(disk, "ballast");
fill(filler);
await pause(15_000);
const full = total(await workers.reports());
rmSync(filler);
await server.restart("immediate");
await pause(5_000);
const after = total(await workers.reports());
const acknowledged = (await workers.reports()).flatMap((report) => report.acknowledged);
await workers.close();

const store = openDatabase(place);
const ledger = await readLedger(store, { organizationId, budgetId: "each-key" });
await store.close();
await server.stop();
const lost = lostAnswers(ledger, acknowledged);
const problems = [checkUsage, checkEvidence, checkBudgets, checkQuiet].flatMap((check) =>
  check(ledger),
);
process.stdout.write(
  `full: ${full.acknowledged} acknowledged, ${full.failed} failed; after: ${after.acknowledged} acknowledged; ${after.wrong} neither answered nor 503, ${lost.length} lost, ${problems.length} problems\n`,
);
for (const problem of [...lost, ...problems].slice(0, 20)) process.stdout.write(`  ${problem}\n`);
const isNoticed = full.failed > 0 && after.acknowledged > full.acknowledged;
process.exit(lost.length + problems.length + after.wrong === 0 && isNoticed ? 0 : 1);

/** Writes until the disk is completely full. */
function fill(path: string): void {
  for (let size = 65_536; size > 0; size = Math.floor(size / 2)) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: "a" });
    } catch {
      // Try a smaller piece.
    }
  }
}

function total(reports: Awaited<ReturnType<typeof workers.reports>>) {
  return {
    acknowledged: reports.reduce((sum, report) => sum + report.acknowledged.length, 0),
    failed: reports.reduce((sum, report) => sum + report.failed, 0),
    wrong: reports.reduce((sum, report) => sum + report.wrong, 0),
  };
}
