import { afterAll, expect, it } from "vitest";
import { minimize, readCorpus } from "../src/fuzz/corpus.ts";
import { createCoverage } from "../src/fuzz/coverage.ts";
import { createCaseRunner } from "../src/fuzz/run-cases.ts";
import { accepted, outcomeOf, type Surface } from "../src/fuzz/surface.ts";
import { surfaces } from "../src/fuzz/surfaces.ts";

const rejections: unknown[] = [];
const note = (reason: unknown): void => void rejections.push(reason);
process.on("unhandledRejection", note);
afterAll(() => void process.off("unhandledRejection", note));

it.each(surfaces.map((surface) => [surface.name, surface] as const))(
  "fuzz: accepts or rejects every input of the corpus of %s",
  async (name, surface) => {
    const corpus = readCorpus(name);
    expect(corpus.length).toBeGreaterThan(10);
    const { check } = createCaseRunner(surface, corpus, rejections);
    for (const input of corpus) expect((await check(input)).problem, input.toString()).toBeNull();
  },
);

it.each(surfaces.map((surface) => [surface.name, surface] as const))(
  "fuzz: finds nothing in a few cases of %s",
  async (name, surface) => {
    const runner = createCaseRunner(surface, readCorpus(name), rejections);
    const count = surface.share < 1 ? 30 : 400;
    const batch = { surface: name, seed: 7, from: 0, count };
    const result = await runner.run(batch);
    expect(result.failures).toEqual([]);
    expect(result.cases).toBe(count);
  },
);

const [chat] = surfaces;

/** A surface with a fault of its own. */
function faulty(run: Surface["run"]): Surface {
  if (chat === undefined) throw new Error("The first surface is missing.");
  return { ...chat, codes: ["accepted", "never"], enough: 50, run };
}

const batch = { surface: "chat", seed: 7, from: 0, count: 60 };
const seed = [Buffer.from('{"a":[1,2,3]}')];

it("fuzz: reports a crash with its smallest input and repeats it from its number", async () => {
  const surface = faulty((input) => {
    if (input.includes("[")) throw new TypeError("a bracket");
    return accepted;
  });
  const { failures } = await createCaseRunner(surface, seed, rejections).run(batch);
  const [first] = failures;
  expect(first).toMatchObject({ surface: "chat", problem: "TypeError: a bracket" });
  expect(Buffer.from(first?.input ?? "", "base64").toString()).toBe("[");
  const again = { ...batch, from: first?.number ?? 0, count: 1 };
  const repeated = await createCaseRunner(surface, seed, rejections).run(again);
  expect(repeated.failures).toEqual([first]);
});

it("fuzz: notices a polluted prototype, a rejection without a handler and an unexpected error code", async () => {
  const problems: (string | null)[] = [];
  const acts = [
    () => void Object.assign(Object.prototype, { polluted: 1 }),
    () => void Promise.reject(new Error("lost")),
    () => outcomeOf(Object.assign(new Error("x"), { code: "internal_error" }), ["invalid_json"]),
  ];
  for (const act of acts) {
    const surface = faulty(() => {
      act();
      return accepted;
    });
    problems.push(
      (await createCaseRunner(surface, seed, rejections).check(Buffer.from("{}"))).problem,
    );
    Reflect.deleteProperty(Object.prototype, "polluted");
  }
  expect(problems).toEqual([
    "prototypes have a new member, polluted",
    "unhandled: Error: lost",
    "Error: x",
  ]);
});

it("fuzz: notices an input that blocks the event loop", async () => {
  const surface = faulty(() => {
    for (const end = performance.now() + 250; performance.now() < end; );
    return accepted;
  });
  const before = process.threadCpuUsage;
  // A busy machine may not let this thread compute for 100 of 250 ms.
  process.threadCpuUsage = () => ({ user: 200_000, system: 0 });
  const { problem } = await createCaseRunner(surface, seed, rejections).check(
    seed[0] ?? Buffer.alloc(0),
  );
  process.threadCpuUsage = before;
  expect(problem).toBe("the event loop is blocked for more than 100 ms");
});

it("fuzz: lists the cells that a long run left empty", async () => {
  const surface = faulty(() => accepted);
  const coverage = createCoverage(surface);
  coverage.add(await createCaseRunner(surface, seed, rejections).run({ ...batch, count: 20 }));
  expect(coverage.problems()).toEqual([]);
  coverage.add(await createCaseRunner(surface, seed, rejections).run(batch));
  expect(coverage.problems()).toContain("chat: no case reached never (codes)");
});

it("fuzz: shrinks an input to the bytes that matter", async () => {
  const input = Buffer.from("a long text with one x and more text after it");
  expect((await minimize(input, async (one) => one.includes("x"))).toString()).toBe("x");
});
