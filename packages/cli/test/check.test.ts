import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { describeFailure } from "../src/failure.ts";
import { createProgram } from "../src/main.ts";

const folder = mkdtempSync(join(tmpdir(), "tollgate-check-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const database = join(folder, "check.db");
const sound = `store: { type: sqlite, filename: ${database} }
providers: { sim: { type: sim } }
`;
const doubtful = `${sound}policy:
  rules:
    - { effect: permit, id: typo, match: { model: sim/tollgate/ecko } }
    - { effect: permit, id: all }
budgets:
  - { id: month, limit: { usd: 5 }, period: month }
`;
const wrong = `${sound}polcy: {}\nbudgets: [{ id: b, limit: { usd: -1 }, period: day }]\n`;

/** The output and the exit code of a command. */
async function check(text: string, ...words: readonly string[]) {
  const file = join(folder, "tollgate.config.yaml");
  writeFileSync(file, text);
  const printed: string[] = [];
  const write = vi.spyOn(process.stdout, "write").mockImplementation((part) => {
    printed.push(String(part));
    return true;
  });
  try {
    await createProgram().parseAsync(["node", "tollgate", "check", "--config", file, ...words]);
    return { file, exitCode: 0, line: null, printed: printed.join("") };
  } catch (thrown) {
    return { file, ...describeFailure(thrown), printed: printed.join("") };
  } finally {
    write.mockRestore();
  }
}

describe("tollgate check", () => {
  it("shows the contents of a configuration without opening anything", async () => {
    const { file, exitCode, printed } = await check(sound);
    expect(exitCode).toBe(0);
    expect(printed).toBe(
      `${file}\n\nGATEWAY  CONNECTION  MODELS  OTHERS\nsim      platform         2  no\n\npolicy       none: everything is permitted\nbudgets      none\nrate limits  none\n`,
    );
    expect(existsSync(database)).toBe(false);
  });

  it("warns about settings without effect, and fails on them only with --strict", async () => {
    const message =
      "`policy.rules[0].match.model` matches no model of any gateway: sim/tollgate/ecko.";
    const text = await check(doubtful);
    expect(text.exitCode).toBe(0);
    expect(text.printed).toContain(`warning: ${message}\n`);
    const { exitCode, line, printed } = await check(doubtful, "--strict", "--json");
    expect([exitCode, line]).toEqual([1, "error: the configuration has 1 warning"]);
    expect(JSON.parse(printed)).toMatchObject({
      gateways: [{ gateway: "sim", connection: "platform", models: 2, open: false }],
      policy: { rules: 2 },
      budgets: ["month"],
      errors: [],
      warnings: [{ path: "policy.rules[0].match.model", message }],
    });
    expect((await check(sound, "--strict")).exitCode).toBe(0);
  });

  it("lists every error with its path and exits with 2", async () => {
    const text = await check(wrong);
    expect([text.exitCode, text.line]).toEqual([2, "error: the configuration has 2 errors"]);
    expect(text.printed).toBe(
      `${text.file}\n\nerror: \`budgets[0].limit\` must be one of { usd }, from 0 to 9007199 with at most 9 decimals, { tokens } and { requests }, whole numbers from 0.\nerror: Unknown option: polcy.\n`,
    );
    const { exitCode, printed } = await check(wrong, "--json");
    expect(exitCode).toBe(2);
    expect(JSON.parse(printed)).toMatchObject({
      file: text.file,
      errors: [{ path: "budgets[0].limit" }, { path: "polcy" }],
      warnings: [],
    });
  });

  it("opens the store only with --store, and changes nothing in it", async () => {
    const { exitCode, line } = await check(sound, "--store");
    expect(exitCode).toBe(2);
    expect(line).toContain("the database doesn't exist yet");
    expect(existsSync(database)).toBe(false);
  });
});
