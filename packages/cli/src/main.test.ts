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
    ["a bad dimension", ["activity", "summarize", "--by", "outcome"], "It must be one of: org"],
    ["a bad word", ["decisions", "--effect", "maybe"], "It must be one of: permit, deny."],
    ["a bad time", ["steps", "--from", "yesterday"], "It must be a time such as 2026-01-31"],
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

describe("the help of a command", () => {
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
