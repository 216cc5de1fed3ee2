/**
 * `npm run faults -- guards [ROW…]`: removes each guard from a scratch copy and runs the tests or the command for its row.
 * They must pass with the guard and fail without it. The command of F38 needs root.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Guard, readGuards, scratchCopy } from "./guard-removal.ts";

interface TestRun {
  passed: number;
  failed: number;
}

const repository = fileURLToPath(new URL("../../..", import.meta.url));
const list = fileURLToPath(new URL("../guards.json", import.meta.url));
const maxRunMs = 120_000;
/** For the tests of all rows together. */
const maxWholeRunMs = 900_000;

const rows = process.argv.slice(2);
const guards = readGuards(readFileSync(list, "utf8")).filter(
  ({ row }) => rows.length === 0 || rows.includes(row),
);
const copy = scratchCopy(repository);
process.once("exit", copy.remove);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const ownRows = guards.flatMap(({ row, tests, command }) =>
  tests === undefined && command === undefined ? row : [],
);
const names = `^(?:${[...new Set(ownRows)].join("|")}) `;
const whole =
  ownRows.length > 0
    ? runTests(copy.root, { names }, { timeout: maxWholeRunMs })
    : { passed: 0, failed: 0 };
for (const others of otherRuns(guards)) {
  const run = runOf(copy.root, others);
  whole.passed += run.passed;
  whole.failed += run.failed;
  if (run.passed === 0 || run.failed > 0)
    process.stdout.write(`${JSON.stringify(others)}: ${run.failed} failed\n`);
}
process.stdout.write(`with every guard: ${whole.passed} passed, ${whole.failed} failed\n`);
const survivors = guards.filter((guard) => !report(guard, runWithout(copy.root, guard)));
process.stdout.write(
  survivors.length === 0
    ? `each of ${guards.length} removals was noticed\n`
    : `not noticed: ${survivors.map(({ row }) => row).join(", ")}\n`,
);
process.exit(
  survivors.length === 0 && whole.failed === 0 && whole.passed > 0 && guards.length > 0 ? 0 : 1,
);

/** The commands and the tests in other packages, once each. */
function otherRuns(all: readonly Guard[]): readonly Selection[] {
  const others = all.map(runNeededBy).filter((one) => "command" in one || one.file !== undefined);
  return [...new Map(others.map((one) => [JSON.stringify(one), one])).values()];
}

function runNeededBy({ test, tests, command }: Guard): Selection {
  if (command !== undefined) return { command };
  const names = test.replaceAll(/[()]/g, "\\$&");
  return tests === undefined ? { names: `^${names}` } : { names, file: tests };
}

function runWithout(root: string, guard: Guard): TestRun {
  const { file, find, replace } = guard;
  const path = join(root, file);
  const source = readFileSync(path, "utf8");
  if (source.split(find).length !== 2)
    throw new Error(`${file} does not contain this exactly once: ${find}`);
  writeFileSync(
    path,
    source.replace(find, () => replace),
  );
  // Tests can wait forever for a removed guard, so the limits are short.
  const limits = ["--testTimeout=4000", "--hookTimeout=3000", "--bail=1"];
  const run = runOf(root, runNeededBy(guard), limits);
  writeFileSync(path, source);
  return run;
}

/** Tests by a pattern of their titles, of one file or of this package. */
interface Tests {
  readonly names: string;
  readonly file?: string;
}

type Selection = Tests | { readonly command: string };

function runOf(root: string, selected: Selection, limits: readonly string[] = []): TestRun {
  return "command" in selected
    ? runCommand(root, selected.command)
    : runTests(root, selected, { limits });
}

/** A command that prints no result didn't run, so it neither passes nor fails. */
function runCommand(root: string, command: string): TestRun {
  const words = ["--conditions=tollgate-source", "packages/faults/src/run.ts", command];
  const { status, stdout } = spawnSync(process.execPath, words, {
    cwd: root,
    stdio: ["ignore", "pipe", "ignore"],
    timeout: maxRunMs,
  });
  if (stdout.length === 0) return { passed: 0, failed: 0 };
  return status === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

function runTests(
  root: string,
  { names, file }: Tests,
  { limits = [], timeout = maxRunMs }: { limits?: readonly string[]; timeout?: number },
): TestRun {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const resultFile = join(root, "tests.json");
  rmSync(resultFile, { force: true });
  const reporting = ["--reporter=json", `--outputFile=${resultFile}`];
  const [, project = "faults"] = file?.split("/") ?? [];
  const chosen = ["--project", project, "--typecheck.enabled=false", ...(file ? [file] : [])];
  const words = ["run", ...chosen, "-t", names, ...reporting, ...limits];
  spawnSync(process.execPath, [vitest, ...words], {
    cwd: root,
    stdio: "ignore",
    timeout,
  });
  if (!existsSync(resultFile)) return { passed: 0, failed: 0 };
  const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(resultFile, "utf8"));
  return { passed: Number(numPassedTests), failed: Number(numFailedTests) };
}

/** A removal is noticed if a test failed. Tests that don't load, or don't end in time, prove nothing. */
function report({ row, guard }: Guard, { passed, failed }: TestRun): boolean {
  const outcome = failed > 0 ? "noticed" : passed > 0 ? "SURVIVED" : "NOT RUN";
  process.stdout.write(`${row.padEnd(4)} ${outcome.padEnd(8)} ${guard}\n`);
  return failed > 0;
}
