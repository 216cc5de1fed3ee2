import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { createGateway } from "@tollgate/core";
import { simProvider } from "@tollgate/provider-sim";
import { sqliteStore } from "@tollgate/store-sqlite";
import { createTestGateway, manualClock } from "@tollgate/testing";
import { parquetMetadata } from "hyparquet";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { temporaryFolder } from "./command-line.ts";
import { runIn, runJsonIn } from "./in-process.ts";

const folder = temporaryFolder();

const sizeIn = (own: string) => (name: string) => statSync(join(own, name)).size;

/** Two calls of ada and one of bob, as the default gateway records them. */
beforeAll(async () => {
  const gateway = createGateway({
    store: sqliteStore({ filename: join(folder, "tollgate.db") }),
    providers: { sim: simProvider() },
  });
  const call = async (userId: string, model = "sim/tollgate/echo"): Promise<void> => {
    const caller = { organizationId: "acme", userId, label: `=${userId}` };
    const body = JSON.stringify({ model, messages: [{ role: "user", content: "tell me" }] });
    const headers = { "content-type": "application/json" };
    const url = "http://in-process/v1/chat/completions";
    await (await gateway.as(caller).fetch(url, { method: "POST", headers, body })).text();
  };
  for (const userId of ["ada", "ada", "bob"]) await call(userId);
  await gateway.close();
}, 30_000);

describe("the commands for usage and costs", { timeout: 60_000 }, () => {
  it("sum up by one or several dimensions, the most expensive first", async () => {
    const { output } = await runIn(folder, ["steps", "summarize", "--by", "user,model"]);
    expect(output).toMatch(
      /^ORGANIZATION +USER +MODEL +STEPS +IN +OUT +COST +UNPRICED +ESTIMATED\n/,
    );
    expect(output).toMatch(/\nacme +ada +sim\/tollgate\/echo +2 /);
    const words = [
      "activity",
      "summarize",
      "--organization",
      "acme",
      "--by",
      "key",
      "--user",
      "bob",
    ];
    expect(await runJsonIn(folder, ...words)).toMatchObject({
      data: [{ keyLabel: "=bob", steps: 1, attempts: 1 }],
    });
    const wrong = await runIn(folder, ["steps", "summarize", "--by", "colour"]);
    expect(wrong).toMatchObject({ code: 2, errors: expect.stringContaining("must be one of") });
  });

  it("compare hourly sums with Steps, and repair them", async () => {
    const own = temporaryFolder();
    const store = sqliteStore({ filename: join(own, "tollgate.db") });
    const clock = manualClock();
    const { gateway, chat, key } = await createTestGateway({ store, clock });
    const { organizationId } = key;
    const begun = new Date(clock.now()).toISOString();
    await (await gateway.fetch(chat())).text();
    clock.setWall(clock.now() + 3 * 3_600_000);
    await gateway.rollUp();
    const asked = { organizationId, detail: "callers" } as const;
    const { data } = await store.usage.hours(asked, { cursor: null, limit: 1 });
    const mark = (await store.usage.mark(organizationId)) ?? "";
    const hours = data.map((row) => ({ ...row, id: "again" }));
    await store.usage.add({ organizationId, after: mark, mark, hours });
    await gateway.close();
    const words = ["usage", "reconcile", "--from", begun];
    const repaired = await runIn(own, [...words, "--repair"]);
    expect(repaired).toMatchObject({
      code: 1,
      errors: expect.stringContaining("some hourly sums differed from their Steps"),
    });
    expect(repaired.output).toMatch(/ -1 +-\d+ .*\n\nSteps: 1, differences repaired: 1\n$/);
    expect(await runIn(own, words)).toEqual({
      ...{ code: 0, output: "Steps: 1, differences repaired: 0\n", errors: "" },
    });
  });

  it("export to standard output and to a new file", async () => {
    const { output } = await runIn(folder, ["activity", "export", "--format", "jsonl"]);
    const lines = output.trimEnd().split("\n");
    expect(lines.map((line): unknown => JSON.parse(line))).toHaveLength(3);
    const words = ["steps", "export", "--user", "bob", "--out", "steps.csv"];
    expect(await runIn(folder, words)).toMatchObject({ code: 0, output: "" });
    const written = readFileSync(join(folder, "steps.csv"), "utf8");
    expect(written.split("\r\n")).toHaveLength(3);
    expect(written).toContain(",bob,");
    expect(written).toContain(",'=bob,");
    const again = await runIn(folder, words);
    expect(again).toMatchObject({ code: 1, errors: "error: steps.csv already exists\n" });
    expect(readFileSync(join(folder, "steps.csv"), "utf8")).toBe(written);
    const decisions = await runIn(folder, ["decisions", "export", "--effect", "deny"]);
    expect(decisions.output.split("\r\n")).toHaveLength(2);
  });

  it("keep an existing file when an export fails at once", async () => {
    writeFileSync(join(folder, "kept.csv"), "of last month");
    for (const out of ["kept.csv", "new.csv"])
      for (const words of [["focus"], ["focus", "--format", "parquet"], ["changes"]]) {
        const failing = ["export", ...words, "--organization", "", "--out", out];
        expect(await runIn(folder, failing)).toMatchObject({ code: 1 });
      }
    expect(readFileSync(join(folder, "kept.csv"), "utf8")).toBe("of last month");
    expect(readdirSync(folder).filter((name) => /new|part/.test(name))).toEqual([]);
  });

  it("give an export its name only when it is complete", async () => {
    const own = temporaryFolder();
    const { promise: halfway, resolve: rest } = Promise.withResolvers<void>();
    const server = createServer(async (_, outgoing) => {
      outgoing.writeHead(200, { "content-type": "text/csv; charset=utf-8" }).write("id\r\n");
      await halfway;
      outgoing.end("1\r\n");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = Object(server.address());
    const there = { TOLLGATE_URL: `http://127.0.0.1:${port}`, TOLLGATE_TOKEN: "a-token" };
    const exported = runIn(own, ["steps", "export", "--out", "steps.csv"], there);
    await vi.waitFor(() => expect(readdirSync(own).map(sizeIn(own))).toEqual([4]), 10_000);
    expect(readdirSync(own)).toEqual([expect.stringMatching(/^steps\.csv\..+\.part$/)]);
    rest();
    expect(await exported).toMatchObject({ code: 0, errors: "" });
    server.close();
    expect(readdirSync(own)).toEqual(["steps.csv"]);
    expect(readFileSync(join(own, "steps.csv"), "utf8")).toBe("id\r\n1\r\n");
  });

  it("export costs for FinOps tools, and changes for an audit", async () => {
    const focus = ["export", "focus", "--format", "parquet", "--out", "focus.parquet"];
    expect(await runIn(folder, focus)).toMatchObject({ code: 0, output: "", errors: "" });
    const metadata = parquetMetadata(
      new Uint8Array(readFileSync(join(folder, "focus.parquet"))).buffer,
    );
    expect(metadata.schema.map(({ name }) => name)).toContain("x_StepId");
    expect(metadata.num_rows).toBe(6n);
    const changes = await runIn(folder, ["export", "changes", "--format", "jsonl"]);
    const kinds = changes.output
      .trimEnd()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(kinds).toContainEqual(expect.objectContaining({ kind: "policy.changed" }));
  });

  it("filter by data class and by account owner", async () => {
    const count = async (...words: readonly string[]): Promise<number> =>
      (await runIn(folder, ["steps", "export", "--format", "jsonl", ...words])).output.split("\n")
        .length - 1;
    expect(await count("--class-from", "D2_CONFIDENTIAL")).toBe(0);
    const ours = ["--class-up-to", "D1_INTERNAL", "--connection", "platform"];
    expect(await count(...ours, "--user", "ada", "--user", "bob")).toBe(3);
  });

  it("preview new prices without writing, and apply them as corrections that `changes` lists", async () => {
    writeFileSync(
      join(folder, "prices.json"),
      JSON.stringify({ "sim/tollgate/echo": { input: 1, output: 1 } }),
    );
    const words = ["steps", "reprice", "--prices", "prices.json"];
    const row = { model: "sim/tollgate/echo", attempts: 3, different: 3 };
    expect(await runJsonIn(folder, ...words)).toMatchObject({ data: [{ ...row, corrected: 0 }] });
    const applied = [...words, "--apply", "--actor", "ops"];
    expect(await runJsonIn(folder, ...applied)).toMatchObject({ data: [{ ...row, corrected: 3 }] });
    expect(await runJsonIn(folder, ...applied)).toMatchObject({
      data: [{ ...row, different: 0, corrected: 0 }],
    });
    const changes = await runIn(folder, ["changes", "--kind", "correction"]);
    expect(changes.output.match(/ correction +ops +acme /g)).toHaveLength(3);
    const missing = await runIn(folder, ["steps", "reprice", "--prices", "none.json"]);
    expect(missing).toMatchObject({ code: 1, errors: expect.stringContaining("none.json") });
  });
});
