/**
 * `npm run faults -- fuzz --cases 1000000 --seed 7 --surface chat`: bytes of clients, upstreams and hosts that are nearly
 * valid, from a grammar and by mutation of a corpus. `--minutes 15` ends it early, `--processes 2` is one per core by
 * default, `--from N --cases 1` repeats case N of a surface.
 */
import { type ChildProcess, fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { readNumbers, readTexts } from "./arguments.ts";
import { addToCorpus } from "./fuzz/corpus.ts";
import { type Coverage, createCoverage } from "./fuzz/coverage.ts";
import type { Batch, BatchResult, Failure } from "./fuzz/run-cases.ts";
import { surfaces } from "./fuzz/surfaces.ts";

const defaults = {
  cases: 1_000_000,
  seed: Date.now() % 1_000_000_000,
  from: 0,
  minutes: 0,
  processes: availableParallelism(),
};
const { cases, seed, from, minutes, processes } = readNumbers(defaults, ["surface"]);
const { surface: only } = readTexts([...Object.keys(defaults), "surface"]);
const chosen = surfaces.filter(({ name }) => only === undefined || name === only);
if (chosen.length === 0) {
  const names = surfaces.map(({ name }) => name).join(", ");
  process.stderr.write(`Unknown surface: ${only}. Use one of ${names}.\n`);
  process.exit(2);
}

const maxBatchMs = 300_000;
/** How many batches each process gets, at least: they end at about the same time. */
const batchesPerSurface = 40;
const maxBatch = 20_000;

const started = performance.now();
const isLate = (): boolean => minutes > 0 && performance.now() - started > minutes * 60_000;
const coverages: ReadonlyMap<string, Coverage> = new Map(
  chosen.map((surface) => [surface.name, createCoverage(surface)]),
);
const failures: Failure[] = [];
const lost: string[] = [];
const batches = planBatches();

process.stdout.write(`${cases} cases, seed ${seed}, ${processes} processes\n`);
await Promise.all(Array.from({ length: Math.max(1, processes) }, work));
const seconds = (performance.now() - started) / 1_000;
const done = [...coverages.values()].reduce((sum, coverage) => sum + coverage.cases(), 0);
for (const coverage of coverages.values())
  for (const line of coverage.report()) process.stdout.write(`${line}\n`);
const empty = [...coverages.values()].flatMap((coverage) => coverage.problems());
for (const problem of [...empty, ...lost]) process.stdout.write(`  ${problem}\n`);
for (const failure of failures) report(failure);
process.stdout.write(
  `${done} cases in ${Math.round(seconds)} s, ${Math.round(done / seconds)} per second, seed ${seed}: ` +
    `${failures.length + lost.length} failures, ${empty.length} empty cells\n`,
);
process.exit(failures.length + lost.length + empty.length === 0 && done > 0 ? 0 : 1);

/** The batches of all surfaces by turns, so that a run that ends early has cases of each. */
function planBatches(): Batch[] {
  const shares = chosen.reduce((sum, { share }) => sum + share, 0);
  const all = chosen.flatMap(({ name, share }) => {
    const own = Math.max(1, Math.round((cases * share) / shares));
    const size = Math.min(maxBatch, Math.ceil(own / batchesPerSurface));
    const count = Math.ceil(own / size);
    return Array.from({ length: count }, (_, at) => ({
      order: (at + 0.5) / count,
      batch: {
        surface: name,
        seed,
        from: from + at * size,
        count: Math.min(size, own - at * size),
      },
    }));
  });
  return all.sort((one, other) => one.order - other.order).map(({ batch }) => batch);
}

/** Runs batches in one process until none is left. A process that dies is replaced. */
async function work(): Promise<void> {
  let child = startChild();
  for (let batch = batches.shift(); batch !== undefined && !isLate(); batch = batches.shift()) {
    const result = await runOn(child, batch);
    if (result === null) {
      lost.push(
        `${batch.surface}: the process ended or hung in cases ${batch.from} to ${batch.from + batch.count - 1}`,
      );
      child.kill("SIGKILL");
      child = startChild();
      continue;
    }
    coverages.get(result.surface)?.add(result);
    failures.push(...result.failures);
  }
  child.disconnect();
}

function startChild(): ChildProcess {
  const script = fileURLToPath(new URL("./fuzz/fuzz-process.ts", import.meta.url));
  return fork(script, { execArgv: [...process.execArgv, "--no-warnings"] });
}

function runOn(child: ChildProcess, batch: Batch): Promise<BatchResult | null> {
  return new Promise((resolve) => {
    const end = (result: BatchResult | null): void => {
      clearTimeout(expired);
      child.removeAllListeners();
      resolve(result);
    };
    const expired = setTimeout(() => end(null), maxBatchMs);
    child.once("message", (result: BatchResult) => end(result));
    child.once("exit", () => end(null));
    child.send(batch);
  });
}

/** Prints how to repeat a case, and keeps its input for the tests. */
function report({ surface, number, problem, input }: Failure): void {
  const bytes = Buffer.from(input, "base64");
  addToCorpus(surface, `fuzz, seed ${seed}, case ${number}`, bytes);
  process.stdout.write(
    `${surface}: ${problem}\n  repeat: npm run faults -- fuzz --surface ${surface} --seed ${seed} --from ${number} --cases 1\n` +
      `  smallest input: ${JSON.stringify(bytes.toString("utf8").slice(0, 500))}\n`,
  );
}
