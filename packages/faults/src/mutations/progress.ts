/** Messages between the command and the processes that run the tests, in files of one folder. */
import { appendFileSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./mutants.ts";

export type SampledMutant = Mutant & { readonly number: number };

/** One line of the progress of a run. Mutants are given by number, tests by file and name. */
export type Progress =
  /** A test begins with these mutants, or as written. */
  | { readonly is: "begin"; readonly test: string; readonly mutants: readonly number[] }
  /** Modules reached these mutants while no test ran. */
  | { readonly is: "loaded"; readonly mutants: readonly number[] }
  /** A test that passed as written reached these mutants, in so many milliseconds. */
  | {
      readonly is: "reached";
      readonly test: string;
      readonly ms: number;
      readonly mutants: readonly number[];
    }
  /** It fails as written, so it proves nothing. */
  | { readonly is: "broken"; readonly test: string }
  /** The test failed with the mutant, and passed again without it. */
  | { readonly is: "killed"; readonly test: string; readonly mutant: number }
  /** The test failed with the mutant, then without it: an earlier mutant may be the reason. */
  | { readonly is: "suspected"; readonly test: string; readonly mutant: number }
  /** The test was run with every mutant that it reaches and that was alive. */
  | { readonly is: "done"; readonly test: string };

/** The variables that tell a process its folder, the slowest test of its round, and a mutant that is always active. */
export const variables = {
  folder: "TOLLGATE_MUTANTS",
  maxMs: "TOLLGATE_MUTANTS_MAX_MS",
  only: "TOLLGATE_MUTANTS_ONLY",
};

export function readSample(): readonly SampledMutant[] {
  return JSON.parse(readFileSync(fileOf("sample.json"), "utf8"));
}

/** The texts of the files with mutants: changes of the working tree during a run have no effect on them. */
export function readFiles(): ReadonlyMap<string, string> {
  return new Map(JSON.parse(readFileSync(fileOf("files.json"), "utf8")));
}

export function readProgress(): readonly Progress[] {
  const lines = readFileSync(fileOf("progress.jsonl"), "utf8").split("\n").slice(0, -1);
  return lines.map((line): Progress => JSON.parse(line));
}

export function addProgress(progress: Progress): void {
  appendFileSync(fileOf("progress.jsonl"), `${JSON.stringify(progress)}\n`);
}

/** Reports that a process goes on, though it has no progress to add. */
export function goOn(): void {
  const now = Date.now() / 1_000;
  utimesSync(fileOf("alive"), now, now);
}

/** When a process last reported anything, in milliseconds. */
export function lastReportAt(): number {
  return Math.max(...["alive", "progress.jsonl"].map((name) => statSync(fileOf(name)).mtimeMs));
}

/** Creates the files that processes write to. */
export function beginProgress(): void {
  for (const name of ["alive", "progress.jsonl"]) writeFileSync(fileOf(name), "");
}

/** A file of the run's folder. */
export function fileOf(name: string): string {
  const folder = process.env[variables.folder];
  if (folder === undefined) throw new Error(`${variables.folder} is not set.`);
  return join(folder, name);
}
