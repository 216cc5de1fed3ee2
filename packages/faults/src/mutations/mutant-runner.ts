import { relative, resolve } from "node:path";
import { type RunnerTestCase, TestRunner } from "vitest";
import { compareName, independent, type MutantKind, switchName } from "./mutants.ts";
import {
  addProgress,
  goOn,
  type Progress,
  readProgress,
  readSample,
  variables,
} from "./progress.ts";

const packages = resolve(import.meta.dirname, "../../..");
const sample = readSample();
const setTimer = setTimeout;
const clearTimer = clearTimeout;

/** The mutated files don't depend on the store, so one store is enough. */
const repeats = /\bsqliteStore\b/;
const maxTestMs = 30_000;

/** A test that is run repeatedly. */
interface Attempt {
  readonly test: RunnerTestCase;
  readonly name: string;
  readonly run: () => unknown;
  /** How long it takes as written. */
  readonly ms: number;
  /** How often it reaches each mutant as written. */
  readonly usual: Uint32Array;
  /** It was last run as written, and passed. */
  isFresh: boolean;
}

/** Runs each test as written, then with the mutants that it reaches and that no test has killed yet. */
export default class MutantRunner extends TestRunner {
  readonly #maxMs = Number(process.env[variables.maxMs] ?? Number.POSITIVE_INFINITY);
  readonly #only = process.env[variables.only];
  /** How often the code reached each mutant. */
  readonly #reached = new Uint32Array(sample.length);
  /** How often its value was the same as without it. */
  readonly #same = new Uint32Array(this.#reached.length);
  readonly #killed = new Set<number>();
  readonly #done = new Set<string>();
  readonly #suspected = new Map<string, Set<number>>();
  readonly #known = new Map<string, Extract<Progress, { is: "reached" }>>();
  /** How often each active mutant may be reached: a mutant can make a loop endless. 0 if it isn't active. */
  readonly #active = new Float64Array(this.#reached.length);

  constructor(config: ConstructorParameters<typeof TestRunner>[0]) {
    super(config);
    if (this.#only !== undefined) this.#active[Number(this.#only)] = Number.POSITIVE_INFINITY;
    for (const line of readProgress()) {
      if (line.is === "killed") this.#killed.add(line.mutant);
      if (line.is === "done") this.#done.add(line.test);
      if (line.is === "reached") this.#known.set(line.test, line);
      if (line.is === "suspected")
        this.#suspected.set(line.test, suspects(this.#suspected, line.test).add(line.mutant));
    }
    Reflect.set(globalThis, switchName, (mutant: number): boolean => {
      const times = (this.#reached[mutant] ?? 0) + 1;
      this.#reached[mutant] = times;
      const max = this.#active[mutant] ?? 0;
      if (max > 0 && times > max) throw new Error("The mutant made the code run on and on.");
      return max > 0;
    });
    Reflect.set(globalThis, compareName, (mutant: number, value: unknown, other: unknown) => {
      if (isSame(sample[mutant]?.kind, value, other))
        this.#same[mutant] = (this.#same[mutant] ?? 0) + 1;
      return value;
    });
  }

  override onBeforeRunTask(test: RunnerTestCase): Promise<void> {
    // Long stretches of tests may have nothing to try.
    goOn();
    this.#reportLoaded();
    return super.onBeforeRunTask(test);
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const run = TestRunner.getTestFn(test);
    if (this.#only !== undefined) return await run();
    const name = `${relative(packages, test.file.filepath)}: ${test.fullTestName}`;
    if (repeats.test(name) || this.#done.has(name) || this.#hasNothingToTry(name)) return;
    addProgress({ is: "begin", test: name, mutants: [] });
    this.#reached.fill(0);
    this.#same.fill(0);
    const started = performance.now();
    const passes = await this.#passes({ test, run }, maxTestMs);
    const ms = performance.now() - started;
    const counts = this.#reached.map((times, mutant) => times - (this.#same[mutant] ?? 0));
    const usual = Uint32Array.from(this.#reached);
    if (!passes) return addProgress({ is: "broken", test: name });
    const mutants = [...counts.keys()].filter((mutant) => (counts[mutant] ?? 0) > 0);
    addProgress({ is: "reached", test: name, ms, mutants });
    if (ms > this.#maxMs) return;
    const alive = mutants.filter((mutant) => !this.#killed.has(mutant));
    const suspected = suspects(this.#suspected, name);
    const attempt = { test, name, run, ms, usual, isFresh: true };
    const others = sample.filter(({ number }) => alive.includes(number) && !suspected.has(number));
    const groups = [
      ...alive.filter((mutant) => suspected.has(mutant)).map((mutant) => [mutant]),
      ...independent(others).map((group) => group.map(({ number }) => number)),
    ];
    for (const group of groups) if (!(await this.#search(attempt, group))) return;
    addProgress({ is: "done", test: name });
    this.#reached.fill(0);
  }

  /**
   * Finds the mutants that fail the test. Most tests pass with any of them, so it activates them all and then, if the
   * test fails, each half. Returns false if the test no longer passes as written.
   */
  async #search(attempt: Attempt, mutants: readonly number[]): Promise<boolean> {
    if (mutants.length === 0) return true;
    const { name } = attempt;
    addProgress({ is: "begin", test: name, mutants });
    const passes = await this.#passesWith(attempt, mutants);
    const { isFresh } = attempt;
    attempt.isFresh = false;
    if (passes) return true;
    const [mutant, other] = mutants;
    if (other !== undefined || mutant === undefined) {
      const half = mutants.length >> 1;
      const isIntact = await this.#search(attempt, mutants.slice(0, half));
      return isIntact && (await this.#search(attempt, mutants.slice(half)));
    }
    attempt.isFresh = await this.#passes(attempt, maxTestMs);
    // The test may also fail because of state that an earlier mutant left behind.
    const is = isFresh || attempt.isFresh ? "killed" : "suspected";
    if (is === "killed") this.#killed.add(mutant);
    addProgress({ is, test: name, mutant });
    return attempt.isFresh;
  }

  #hasNothingToTry(test: string): boolean {
    const known = this.#known.get(test);
    if (known === undefined) return false;
    return known.ms > this.#maxMs || known.mutants.every((mutant) => this.#killed.has(mutant));
  }

  async #passesWith(attempt: Attempt, mutants: readonly number[]): Promise<boolean> {
    const { ms, usual } = attempt;
    this.#reached.fill(0);
    for (const mutant of mutants) this.#active[mutant] = 10 * (usual[mutant] ?? 0) + 10_000;
    try {
      return await this.#passes(attempt, 10 * ms + (mutants.length === 1 ? 1_500 : 500));
    } finally {
      this.#active.fill(0);
    }
  }

  /** One try of a test with its own assertions and its own cleaning up. */
  async #passes({ test, run }: Pick<Attempt, "test" | "run">, maxMs: number): Promise<boolean> {
    super.onBeforeTryTask(test, { retry: 0, repeats: 0 });
    let passes = true;
    try {
      await within(maxMs, run);
      super.onAfterTryTask(test);
    } catch {
      passes = false;
    }
    for (const hook of ["onFinished", "onFailed"] as const) {
      const hooks: unknown = Reflect.get(test, hook);
      Reflect.set(test, hook, undefined);
      if (hook === "onFinished" && Array.isArray(hooks))
        for (const one of hooks.reverse())
          await within(maxMs, () => one(test.context)).catch(() => {});
    }
    if (test.result?.state === "fail") {
      passes = false;
      Reflect.set(test.result, "state", "run");
      Reflect.deleteProperty(test.result, "errors");
    }
    return passes;
  }

  /** Mutants that were reached while a file and its modules were loaded. */
  #reportLoaded(): void {
    const mutants = [...this.#reached.keys()].filter((mutant) => (this.#reached[mutant] ?? 0) > 0);
    if (mutants.length > 0 && this.#only === undefined) addProgress({ is: "loaded", mutants });
    this.#reached.fill(0);
  }
}

function suspects(of: ReadonlyMap<string, Set<number>>, test: string): Set<number> {
  return of.get(test) ?? new Set();
}

/** Whether a mutant's value, or its value as a condition, is the same. */
function isSame(kind: MutantKind | undefined, value: unknown, other: unknown): boolean {
  if (kind === "condition") return Boolean(value) === other;
  if (typeof other !== "function") return Object.is(value, other);
  try {
    return Object.is(value, other());
  } catch {
    return false;
  }
}

/** Fails after so many milliseconds, whether or not the work ends. */
async function within(ms: number, work: () => unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimer(() => reject(new Error("The test took too long.")), ms);
  });
  try {
    await Promise.race([work(), late]);
  } finally {
    clearTimer(timer);
  }
}
