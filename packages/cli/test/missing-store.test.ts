import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { GatewayError } from "@tollgate/core";
import { describe, expect, it } from "vitest";
import { requireStore } from "../src/with-administration.ts";
import { temporaryFolder } from "./command-line.ts";
import { runIn } from "./in-process.ts";

const reading = [
  ["keys"],
  ["keys", "get", "k"],
  ["admin-tokens"],
  ["admin-tokens", "get", "t"],
  ["connections"],
  ["connections", "get", "own", "--organization", "acme"],
  ["rate-limits"],
  ["rate-limits", "get", "r"],
  ["rate-limits", "status", "r"],
  ["budgets"],
  ["budgets", "get", "b"],
  ["budgets", "status", "b"],
  ["budgets", "raises", "b"],
  ["budgets", "reconcile"],
  ["usage", "reconcile"],
  ["evidence", "anchor"],
  ["evidence", "verify", "--key", "k"],
  ["apply", "--file", "teams.json", "--dry-run"],
  ["activity"],
  ["activity", "summarize"],
  ["activity", "export"],
  ["steps"],
  ["steps", "series"],
  ["steps", "get", "s"],
  ["steps", "content", "s"],
  ["steps", "reprice"],
  ["sessions"],
  ["sessions", "lineage", "s"],
  ["sessions", "transcript", "s"],
  ["decisions"],
  ["changes"],
  ["export", "focus"],
  ["migrate", "--check"],
];

describe("a command that only reads", { timeout: 60_000 }, () => {
  it.each(reading.map((words) => [words.join(" "), words] as const))(
    "creates no database: %s",
    async (_name, words) => {
      const folder = temporaryFolder();
      writeFileSync(join(folder, "teams.json"), JSON.stringify({ organizations: { acme: {} } }));
      const database = join(folder, "tollgate.db");
      const { code, output, errors } = await runIn(folder, words);
      expect([code, output]).toEqual([1, ""]);
      expect(errors).toBe(
        `error: SQLite store: the database doesn't exist yet at ${database}: create or upgrade it with 'tollgate migrate', 'tollgate serve' or a command that writes, such as 'keys create'\n`,
      );
      expect(existsSync(database)).toBe(false);
    },
  );

  it("creates no schema in an empty database, and works once a command has written", async () => {
    const folder = temporaryFolder();
    const database = join(folder, "tollgate.db");
    new DatabaseSync(database).close();
    expect(await runIn(folder, ["keys"])).toMatchObject({
      code: 1,
      errors: expect.stringContaining("has no current schema: create or upgrade it with"),
    });
    const client = new DatabaseSync(database);
    expect(client.prepare("SELECT * FROM sqlite_master").all()).toEqual([]);
    client.close();
    const created = ["budgets", "create", "b", "--usd", "1", "--period", "day"];
    expect(await runIn(folder, created)).toMatchObject({ code: 0 });
    expect(await runIn(folder, ["keys"])).toMatchObject({ code: 0, output: "no records\n" });
  });
});

describe("a store that fails its check", () => {
  const failed = (cause: Error) =>
    new GatewayError("evidence_unavailable", "The store failed.", { cause });
  const checked = (failure: unknown) => requireStore({ checkStore: () => Promise.reject(failure) });

  it("needs a command if the failure names a missing schema, in whatever words", async () => {
    const cause = Object.assign(new Error("no tables: run its migrations"), {
      needsMigration: "no tables",
    });
    await expect(checked(failed(cause))).rejects.toThrow(
      /^no tables: create or upgrade it with 'tollgate migrate'/,
    );
  });

  it.each([new Error("call me; call migrate() first"), new Error("the disk is full")])(
    "has another problem otherwise: %s",
    async (cause) => {
      const failure = failed(cause);
      await expect(checked(failure)).rejects.toBe(failure);
    },
  );
});
