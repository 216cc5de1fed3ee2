/** Runs batches of cases for `npm run faults -- fuzz`, which starts one such process per core. */
import { readCorpus } from "./corpus.ts";
import { type Batch, type CaseRunner, createCaseRunner } from "./run-cases.ts";
import { surfaces } from "./surfaces.ts";

// Most cases end with an error, whose stack nobody reads.
Error.stackTraceLimit = 0;

const rejections: unknown[] = [];
process.on("unhandledRejection", (reason) => rejections.push(reason));
process.on("disconnect", () => process.exit(0));

const runners = new Map<string, CaseRunner>();

process.on("message", async (batch: Batch) => {
  process.send?.(await runnerOf(batch.surface).run(batch));
});

function runnerOf(name: string): CaseRunner {
  const known = runners.get(name);
  if (known !== undefined) return known;
  const surface = surfaces.find((one) => one.name === name);
  if (surface === undefined) throw new Error(`Unknown surface: ${name}.`);
  const runner = createCaseRunner(surface, readCorpus(name), rejections);
  runners.set(name, runner);
  return runner;
}
