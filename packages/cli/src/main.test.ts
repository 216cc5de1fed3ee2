import { describe, expect, it, onTestFinished, vi } from "vitest";
import { describeFailure } from "./failure.ts";
import { createProgram } from "./main.ts";

/** The output and exit code for an invalid command line. */
async function runInvalid(words: readonly string[]) {
  const printed: string[] = [];
  const write = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    printed.push(String(text));
    return true;
  });
  try {
    await createProgram().parseAsync(["node", "tollgate", ...words]);
    return { exitCode: 0, text: "" };
  } catch (thrown) {
    const { exitCode, line } = describeFailure(thrown);
    return { exitCode, text: printed.join("") + (line === null ? "" : `${line}\n`) };
  } finally {
    write.mockRestore();
  }
}

describe("an invalid command line", () => {
  it.each([
    ["an unknown command", ["nonsense"], "error: unknown command 'nonsense'"],
    ["help for an unknown command", ["help", "wrong"], "error: unknown command 'wrong'"],
    ["help for an unknown verb", ["help", "keys", "wrong"], "error: unknown command 'keys wrong'"],
    ["a noun's help for an unknown verb", ["keys", "help", "wrong"], "unknown command 'wrong'"],
    ["an unknown option", ["activity", "--bogus"], "error: unknown option '--bogus'"],
    ["a missing option", ["keys", "create"], "error: required option '--organization <id>' not"],
    ["an unknown command of a noun", ["keys", "rvoke"], "error: unknown command 'keys rvoke'"],
    [
      "an argument that a list doesn't take",
      ["budgets", "list", "b"],
      "unknown command 'budgets b'",
    ],
    ["a bad number", ["activity", "--limit", "0"], "It must be a whole number, 1 to 1000."],
    [
      "two values for a name",
      ["steps", ...["a=1", "a=2"].flatMap((pair) => ["--metadata", pair])],
      "The name a is given twice.",
    ],
    [
      "two values for an option that takes one",
      ["activity", "--organization", "acme", "--organization=globex"],
      "error: option '--organization <id>' takes one value and is given twice",
    ],
    [
      "two values for an option of every command",
      ["--actor", "ada", "keys", "list", "--actor", "bob"],
      "error: option '--actor <name>' takes one value and is given twice",
    ],
    [
      "an option and its opposite",
      ["keys", "list", "--live", "--no-live"],
      "error: pass either --live or --no-live",
    ],
    ["a bad dimension", ["activity", "summarize", "--by", "outcome"], "It must be one of: org"],
    ["a bad word", ["decisions", "--effect", "maybe"], "It must be one of: permit, deny."],
    ["a bad time", ["steps", "--from", "yesterday"], "It must be a time such as 2026-01-31"],
    [
      "an unknown command of admin tokens",
      ["admin-tokens", "rvoke"],
      "error: unknown command 'admin-tokens rvoke'",
    ],
    ["a bad bucket", ["steps", "series", "--bucket", "x"], "It must be one of: hour, day."],
    ["a bad log", ["serve", "--log", "x"], "It must be one of: warnings, requests."],
    [
      "a bad place of system messages",
      ["keys", "update", "k", "--leading-system", "x"],
      "It must be one of: history, apart, gateway.",
    ],
    ...["budgets create b --period day", "budgets update b --period day"].map(
      (words): [string, string[], string] => [
        `a bad amount: ${words}`,
        [...words.split(" "), "--usd", "1,50"],
        "It must be an amount such as 0.0125, with at most nine decimals.",
      ],
    ),
    [
      "a bad raise",
      ["budgets", "raise", "b", "--usd", "$5", "--until", "2126-01-01"],
      "It must be an amount such as 0.0125, with at most nine decimals.",
    ],
    ...["requests", "tokens"].map((unit): [string, string[], string] => [
      `a rate of ${unit} without a period`,
      ["rate-limits", "create", "r", `--${unit}`, "5"],
      "error: --requests and --tokens require --per",
    ]),
    ...[
      ["--per", "minute"],
      ["--burst", "5"],
    ].map((words): [string, string[], string] => [
      `a period or a burst of concurrent Steps: ${words[0]}`,
      ["rate-limits", "update", "r", "--concurrent-steps", "5", ...words],
      "error: --per and --burst are for --requests and --tokens",
    ]),
    ["no limit", ["budgets", "create", "b", "--period", "day"], "error: pass exactly one of --usd"],
  ])("has %s: exit code 2 and one line", async (_name, words, line) => {
    const { exitCode, text } = await runInvalid(words);
    expect(exitCode).toBe(2);
    expect(text).toContain(line);
    expect(text.trimEnd().split("\n")).toHaveLength(1);
  });

  it.each([
    "activity",
    "activity summarize",
    "activity export",
    "steps",
    "steps summarize",
    "steps series",
    "steps export",
    "steps reprice",
    "decisions",
    "decisions export",
    "changes",
    "export focus",
    "export decisions",
    "export changes",
    "usage reconcile",
  ])("has a range that ends before it begins: %s", async (command) => {
    const range = ["--from", "2026-01-02", "--to", "2026-01-01T23:59:59Z"];
    const { exitCode, text } = await runInvalid([...command.split(" "), ...range]);
    expect([exitCode, text]).toEqual([2, "error: --from must not be after --to\n"]);
  });
});

it("accepts the same flag twice, and several values where an option collects them", async () => {
  const keys = createProgram().commands.find((noun) => noun.name() === "keys");
  const list = keys?.commands.find((command) => command.name() === "list")?.action(() => {});
  await list?.parseAsync(["--live", "--live"], { from: "user" });
  expect(list?.opts()).toEqual({ live: true });
  const create = keys?.commands.find((command) => command.name() === "create")?.action(() => {});
  const words = "--organization acme --user ada --label a --model x --model y".split(" ");
  await create?.parseAsync(words, { from: "user" });
  expect(create?.opts()).toMatchObject({ model: ["x", "y"] });
});

describe("the help of a command", () => {
  it("is printed by `help` with its words", async () => {
    const printed: string[] = [];
    const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      printed.push(String(text));
      return true;
    });
    onTestFinished(() => write.mockRestore());
    await expect(
      createProgram().parseAsync(["node", "tollgate", "help", "keys", "create"]),
    ).rejects.toMatchObject({ exitCode: 0 });
    expect(printed.join("")).toContain("Usage: tollgate keys create [options]");
  });

  it("names the options that every command takes", () => {
    const keys = createProgram().commands.find((noun) => noun.name() === "keys");
    const help = keys?.commands.find((command) => command.name() === "list")?.helpInformation();
    expect(help).toMatch(/Global Options:.*--config <file>.*--json.*--actor <name>/s);
  });
});

it("listens on the environment's host and port unless an option overrides them", async () => {
  vi.stubEnv("PORT", "9001");
  vi.stubEnv("HOST", "0.0.0.0");
  onTestFinished(() => void vi.unstubAllEnvs());
  const parsed = async (...words: readonly string[]) => {
    const serve = createProgram().commands.find((command) => command.name() === "serve");
    const seen = serve?.action(() => {});
    await seen?.parseAsync([...words], { from: "user" });
    return seen?.opts();
  };
  expect(await parsed()).toMatchObject({ port: 9001, host: "0.0.0.0" });
  expect(await parsed("--port", "0")).toMatchObject({ port: 0, host: "0.0.0.0" });
});
