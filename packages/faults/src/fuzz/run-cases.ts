import { seededRandom } from "../random.ts";
import { minimize } from "./corpus.ts";
import type { Grammar } from "./grammar.ts";
import { mutator } from "./mutation.ts";
import type { Outcome, Surface } from "./surface.ts";

/** The two unlike generators of every surface. Even cases are written by the grammar, odd ones are mutated. */
export const generatorNames = ["grammar", "mutation"] as const;

/** Cases of one surface: `count` of them, from number `from` on. Each depends only on its number and the seed. */
export interface Batch {
  readonly surface: string;
  readonly seed: number;
  readonly from: number;
  readonly count: number;
}

/** A case that broke an invariant. */
export interface Failure {
  readonly surface: string;
  readonly number: number;
  readonly problem: string;
  /** The smallest input found that fails alike, as Base64. */
  readonly input: string;
}

/** The results of a batch. The uses of rules are listed per generator. */
export interface BatchResult {
  readonly surface: string;
  readonly cases: number;
  readonly codes: Readonly<Record<string, number>>;
  readonly paths: Readonly<Record<string, number>>;
  readonly uses: readonly (readonly number[])[];
  readonly failures: readonly Failure[];
}

/** Runs cases of one surface, one after the other. */
export interface CaseRunner {
  run(batch: Batch): Promise<BatchResult>;
  /** Runs one input. Returns the problem, or the outcome. */
  check(input: Buffer): Promise<Checked>;
}

type Checked =
  | { readonly outcome: Outcome; readonly problem: null }
  | { readonly outcome: null; readonly problem: string };

const maxBlockedMs = 100;
/** One slow case may be the machine's fault. */
const repeats = 3;
const maxFailures = 5;

/** `rejections` receives the rejections that nothing handled. */
export function createCaseRunner(
  surface: Surface,
  corpus: readonly Buffer[],
  rejections: unknown[],
): CaseRunner {
  const [first = Buffer.from("{}"), ...others] = corpus;
  const generators: readonly Grammar[] = [surface.grammar, mutator([first, ...others])];
  // Inherits from the prototypes of all parsed JSON. A loop over its members finds those that someone added.
  const probe: readonly unknown[] = [];

  /** Returns a promise only if the surface does, because a run has millions of cases. */
  function outcomeOf(input: Buffer): Checked | Promise<Checked> {
    const started = performance.now();
    try {
      const outcome = surface.run(input);
      if (outcome instanceof Promise) return outcome.then((ended) => afterwards(ended), failed);
      const took = performance.now() - started;
      return took > maxBlockedMs ? blocked(input, outcome) : afterwards(outcome);
    } catch (error) {
      return failed(error);
    }
  }

  function afterwards(outcome: Outcome): Checked {
    for (const name in probe) return problem(`prototypes have a new member, ${name}`);
    return { outcome, problem: null };
  }

  /** Measures a slow case again, by the time that this thread computes. */
  function blocked(input: Buffer, outcome: Outcome): Checked {
    let least = Number.POSITIVE_INFINITY;
    for (let repeat = 0; repeat < repeats; repeat++) {
      const before = process.threadCpuUsage();
      void surface.run(input);
      const { user, system } = process.threadCpuUsage(before);
      least = Math.min(least, (user + system) / 1_000);
    }
    if (least > maxBlockedMs) return problem("the event loop is blocked for more than 100 ms");
    return afterwards(outcome);
  }

  async function check(input: Buffer): Promise<Checked> {
    const checked = await outcomeOf(input);
    // Rejections without a handler are reported after the turn in which they happened.
    await new Promise((resolve) => setImmediate(resolve));
    const [rejection] = rejections.splice(0);
    return rejection === undefined ? checked : problem(`unhandled: ${textOf(rejection)}`);
  }

  return {
    check,
    async run({ seed, from, count }) {
      const result = emptyResult(surface.name);
      const before = generators.map(({ uses }) => Uint32Array.from(uses));
      for (let number = from; number < from + count; number++) {
        const random = seededRandom(mixed(seed, number));
        const input = generators[number % generators.length]?.write(random) ?? Buffer.alloc(0);
        const running = outcomeOf(input);
        const checked = running instanceof Promise ? await running : running;
        result.cases++;
        if (checked.problem === null) countOutcome(result, checked.outcome);
        else if (result.failures.length < maxFailures)
          result.failures.push(await describe(number, input, checked.problem));
        if (running instanceof Promise && rejections.length > 0)
          result.failures.push(await describe(number, input, textOf(rejections.splice(0)[0])));
      }
      const uses = generators.map((generator, at) =>
        [...generator.uses].map((used, rule) => used - (before[at]?.[rule] ?? 0)),
      );
      return { ...result, uses };
    },
  };

  async function describe(number: number, input: Buffer, found: string): Promise<Failure> {
    const kind = kindOf(found);
    const smallest = await minimize(input, async (shorter) => {
      const again = await check(shorter);
      return again.problem !== null && kindOf(again.problem) === kind;
    });
    return { surface: surface.name, number, problem: found, input: smallest.toString("base64") };
  }
}

interface MutableResult
  extends Omit<BatchResult, "cases" | "codes" | "paths" | "failures" | "uses"> {
  cases: number;
  readonly codes: Record<string, number>;
  readonly paths: Record<string, number>;
  readonly failures: Failure[];
}

function emptyResult(surface: string): MutableResult {
  return {
    surface,
    cases: 0,
    codes: Object.create(null),
    paths: Object.create(null),
    failures: [],
  };
}

function countOutcome(result: MutableResult, { code, path = null }: Outcome): void {
  result.codes[code] = (result.codes[code] ?? 0) + 1;
  // Clients can choose the names of members, so only a bounded number of paths is counted.
  if (path !== null && path.length < 100) result.paths[path] = (result.paths[path] ?? 0) + 1;
}

const problem = (text: string): Checked => ({ outcome: null, problem: text });
const failed = (error: unknown): Checked => problem(textOf(error));

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** Problems without their details, which change as an input shrinks. */
function kindOf(text: string): string {
  return text.slice(0, 60).replaceAll(/[\d"'`].*$/g, "");
}

/** A seed of its own for each case. */
function mixed(seed: number, number: number): number {
  const one = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(number + 1, 0xc2b2ae35);
  return Math.imul(one ^ (one >>> 15), 0x2c1b3c6d) ^ (number / 4_294_967_296);
}
