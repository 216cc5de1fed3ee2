/**
 * `npm run faults -- mutations --mutants 100 --seed 7 --area budgets`: changes the source of each area of
 * `mutations.json` in small ways, one at a time, and runs the tests that reach the change. At least 85 % of the changes
 * must fail a test.
 */
import { spawn } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readNumbers, readTexts } from "./arguments.ts";
import {
  type Mutant,
  mutantsOf,
  readAreas,
  withMutants,
  withoutPosition,
} from "./mutations/mutants.ts";
import {
  addProgress,
  beginProgress,
  fileOf,
  lastReportAt,
  readProgress,
  type SampledMutant,
  variables,
} from "./mutations/progress.ts";
import { seededRandom } from "./random.ts";

const minScore = 0.85;
/** The slowest tests of the first round and of the others. */
const [quickMs, maxMs] = [250, 1_500];
const maxRounds = 12;
/** A test process that reports nothing for so long hangs. */
const maxSilenceMs = 90_000;
const maxLoadedMs = 20_000;

const repository = fileURLToPath(new URL("../../..", import.meta.url));
const packages = join(repository, "packages");
const settings = readAreas(readFileSync(join(packages, "faults/mutations.json"), "utf8"));
const { mutants: size, seed } = readNumbers({ mutants: 100, seed: 7 }, ["area"]);
const { area: chosen } = readTexts(["area", "mutants", "seed"]);
const areas = Object.keys(settings.areas).filter((area) => (chosen ?? area) === area);
if (areas.length === 0)
  throw new Error(`--area must be one of ${Object.keys(settings.areas).join(", ")}.`);

const folder = mkdtempSync(join(tmpdir(), "tollgate-mutants-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
process.env[variables.folder] = folder;
beginProgress();

const samples = areas.map((area) => ({ area, mutants: sampleOf(area) }));
const sample = samples
  .flatMap(({ area, mutants }) => mutants.map((mutant) => ({ area, ...mutant })))
  .map((mutant, number) => ({ ...mutant, number }));
writeFileSync(fileOf("sample.json"), JSON.stringify(sample));
const files = [...new Set(sample.map(({ file }) => file))].map((file) => {
  const source = readFileSync(join(packages, file), "utf8");
  const mutants = sample.filter((mutant) => mutant.file === file);
  return [file, withMutants(source, mutants)];
});
writeFileSync(fileOf("files.json"), JSON.stringify(files));
await runRounds();
for (const mutant of onlyLoaded()) await runLoaded(mutant);
process.exit(areas.map(reportArea).every((passes) => passes) ? 0 : 1);

/** A random sample of the area's mutants, all of them if there are fewer. */
function sampleOf(area: string): readonly Mutant[] {
  const random = seededRandom(seed);
  const equivalent = new Set(settings.equivalent.map(({ mutant }) => mutant));
  const files = globSync([...(settings.areas[area] ?? [])], { cwd: packages })
    .filter((file) => !file.endsWith(".test.ts"))
    .sort();
  const all = files.flatMap((file) => mutantsOf(file, readFileSync(join(packages, file), "utf8")));
  const drawn = all
    .map((mutant) => ({ mutant, order: random() }))
    .sort((a, b) => a.order - b.order)
    .filter(({ mutant }) => !equivalent.has(withoutPosition(mutant.id)))
    .slice(0, size);
  process.stdout.write(
    `${area}: ${drawn.length} of ${all.length} mutants in ${files.length} files\n`,
  );
  return drawn.map(({ mutant }) => mutant);
}

/** Runs quick tests first. Repeats tests that a process left open because it hung, or because a mutant broke their state. */
async function runRounds(): Promise<void> {
  for (let round = 1; round <= maxRounds; round++) {
    const before = readProgress().length;
    const slowest = round === 1 ? quickMs : maxMs;
    const ended = await runTests({ [variables.maxMs]: String(slowest) }, []);
    const text = `round ${round}: ${killed().size} of ${sample.length} mutants killed`;
    process.stdout.write(`${text}\n`);
    const news = readProgress().slice(before);
    if (ended && round > 1 && !news.some(({ is }) => is === "suspected" || is === "broken")) return;
  }
}

/** A mutant that only the loading of its module reaches is active from the beginning of a process. */
async function runLoaded(mutant: SampledMutant): Promise<void> {
  const ofFile = new Set(
    sample.filter(({ file }) => file === mutant.file).map(({ number }) => number),
  );
  const costs = new Map<string, number>();
  for (const line of readProgress())
    if (line.is === "reached" && line.mutants.some((one) => ofFile.has(one))) {
      const file = line.test.slice(0, line.test.indexOf(": "));
      costs.set(file, (costs.get(file) ?? 0) + line.ms);
    }
  let left = maxLoadedMs;
  const own = mutant.file.replace(/\.ts$/, ".test.ts");
  const others = [...costs]
    .sort(([, a], [, b]) => a - b)
    .flatMap(([file, ms]) => {
      left -= ms;
      return left > 0 && file !== own ? [file] : [];
    });
  const files = [...(existsSync(join(packages, own)) ? [own] : []), ...others].map(
    (file) => `packages/${file}`,
  );
  const passes = await runTests({ [variables.only]: String(mutant.number) }, [
    ...files,
    "--bail=1",
  ]);
  if (!passes) addProgress({ is: "killed", test: "its modules", mutant: mutant.number });
}

/** Whether the tests ran to their end and, with one mutant only, passed. A process that hangs is killed. */
async function runTests(
  environment: Readonly<Record<string, string>>,
  words: readonly string[],
): Promise<boolean> {
  const vitest = join(repository, "node_modules/vitest/vitest.mjs");
  const config = join(packages, "faults/src/mutations/vitest.config.ts");
  const child = spawn(
    process.execPath,
    [vitest, "run", "--root", repository, "--config", config, "--silent=true", ...words],
    { cwd: repository, env: { ...process.env, ...environment }, detached: true, stdio: "ignore" },
  );
  const end = () => process.kill(-(child.pid ?? 0), "SIGKILL");
  process.once("exit", end);
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const hangs = new AbortController();
  const status = await Promise.race([exited, silence(hangs.signal)]);
  hangs.abort();
  process.off("exit", end);
  if (status !== "silent") return environment[variables.only] === undefined || status === 0;
  end();
  const last = readProgress().at(-1);
  if (last?.is !== "begin") return false;
  const { test, mutants } = last;
  const [mutant, other] = mutants;
  // The next round tries the mutants of a group one by one, because any of them can be the one that hangs.
  if (mutant === undefined) addProgress({ is: "done", test });
  else if (other === undefined) addProgress({ is: "killed", test, mutant });
  else for (const one of mutants) addProgress({ is: "suspected", test, mutant: one });
  return false;
}

async function silence(signal: AbortSignal): Promise<"silent"> {
  const started = Date.now();
  for (;;) {
    await wait(1_000, undefined, { ref: false });
    const last = Math.max(started, lastReportAt());
    if (signal.aborted || Date.now() - last > maxSilenceMs) return "silent";
  }
}

function onlyLoaded(): readonly SampledMutant[] {
  const progress = readProgress();
  const of = (is: "loaded" | "reached") =>
    new Set(progress.flatMap((line) => (line.is === is ? line.mutants : [])));
  const [loaded, reached] = [of("loaded"), of("reached")];
  return sample.filter(({ number }) => loaded.has(number) && !reached.has(number));
}

function killed(): ReadonlySet<number> {
  return new Set(readProgress().flatMap((line) => (line.is === "killed" ? [line.mutant] : [])));
}

function reportArea(area: string): boolean {
  const dead = killed();
  const ofArea = sample.filter((mutant) => mutant.area === area);
  const survivors = ofArea.filter(({ number }) => !dead.has(number));
  const score = 1 - survivors.length / ofArea.length;
  const text = `${area}: ${ofArea.length - survivors.length} of ${ofArea.length} mutants killed, ${(100 * score).toFixed(1)} %`;
  const list = survivors.map(({ kind, id }) => `  ${kind.padEnd(16)} ${id}\n`);
  process.stdout.write(`${text}\n${list.join("")}`);
  return score >= minScore;
}
