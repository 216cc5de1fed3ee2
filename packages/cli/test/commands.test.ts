import { closeSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { chat, run, startServe, temporaryFolder } from "./command-line.ts";
import { runIn, runJsonIn } from "./in-process.ts";

const created = z.object({
  key: z.looseObject({ id: z.string(), organizationId: z.string() }),
  secret: z.string(),
});
const page = z.object({
  data: z.array(z.looseObject({ id: z.string() })),
  nextCursor: z.string().nullable(),
});

const folder = temporaryFolder();
const acme = ["--organization", "acme"];
let key: z.infer<typeof created>;

beforeAll(async () => {
  const words = ["--user", "ada", "--label", "laptop"];
  key = created.parse(await runJsonIn(folder, "keys", "create", ...acme, ...words));
  const { url, child, exited } = await startServe(folder);
  for (const text of ["first", "second\u001b[2J"])
    await (await chat(url, { secret: key.secret, text })).text();
  child.kill("SIGTERM");
  await exited;
}, 30_000);

it("show rejections by a budget, with the needed and remaining amounts", async () => {
  const apart = temporaryFolder();
  const words = ["--user", "ada", "--label", "laptop"];
  const { secret } = created.parse(await runJsonIn(apart, "keys", "create", ...acme, ...words));
  await runJsonIn(apart, "budgets", "create", "none", "--requests", "0", "--period", "day");
  const { url, child, exited } = await startServe(apart);
  expect((await chat(url, { secret, text: "refused" })).status).toBe(429);
  child.kill("SIGTERM");
  await exited;
  const list = ["decisions", "--refused"];
  expect(page.parse(await runJsonIn(apart, ...list, "budget")).data).toMatchObject([
    { effect: "permit", refusal: { by: "budget", budgetId: "none", needed: 1, left: 0 } },
  ]);
  expect((await runIn(apart, [...list, "any"])).output).toMatch(
    /budget none: needed 1 request, left 0 requests/,
  );
  for (const by of ["price", "none"])
    expect(page.parse(await runJsonIn(apart, ...list, by)).data).toEqual([]);
  const either = await runJsonIn(apart, ...list, "budget", "--refused", "price");
  expect(page.parse(either).data).toHaveLength(1);
  expect(await runIn(apart, [...list, "budget", "--refused", "none"])).toMatchObject({ code: 2 });
  expect(await runIn(apart, [...list, "weather"])).toMatchObject({ code: 2 });
}, 60_000);

describe("the commands", () => {
  it("list a noun by default, in pages", async () => {
    const first = page.parse(await runJsonIn(folder, "activity", "--limit", "1"));
    expect(first.data).toHaveLength(1);
    const cursor = first.nextCursor ?? "";
    const second = page.parse(await runJsonIn(folder, "activity", "list", "--cursor", cursor));
    expect(second).toMatchObject({ data: [{ organizationId: "acme" }], nextCursor: null });
    expect(second.data[0]?.id).not.toBe(first.data[0]?.id);
  });

  it.each([
    ["steps", "outcome", "completed", "failed"],
    ["steps", "endpoint", "chat_completions", "embeddings"],
    ["activity", "connection", "platform", "customer"],
    ["changes", "kind", "key.created", "connection.set"],
  ])("list %s with any of the values of a repeated --%s", async (noun, option, some, other) => {
    const { data } = page.parse(await runJsonIn(folder, noun, `--${option}`, some));
    expect(data).not.toEqual([]);
    const repeated = [`--${option}`, some, `--${option}`, other];
    expect(page.parse(await runJsonIn(folder, noun, ...repeated)).data).toEqual(data);
  });

  it("read only one organization when it is named", async () => {
    expect(await runJsonIn(folder, "activity", "--organization", "other")).toEqual({
      data: [],
      nextCursor: null,
    });
  });

  it("print tables for people, with money in dollars", async () => {
    const { output, code } = await runIn(folder, ["activity"]);
    expect(code).toBe(0);
    expect(output).toMatch(/^AT +KEY +MODEL +IN +OUT +COST/);
    expect(output).toMatch(/ sim\/tollgate\/echo +4 +3 +\$0\.0000016 /);
  });

  it("show a Step, its Session, its transcript without control characters, and its decision", async () => {
    const { data } = page.parse(await runJsonIn(folder, "steps", "--limit", "1"));
    const step = z
      .looseObject({ sessionId: z.string(), decisionId: z.string() })
      .parse(await runJsonIn(folder, "steps", "get", String(data[0]?.id), ...acme));
    expect(step).toMatchObject({ outcome: "completed", attempts: [{ number: 1 }] });
    const decision = await runJsonIn(folder, "decisions", "get", step.decisionId, ...acme);
    expect(decision).toMatchObject({ effect: "permit" });
    const session = await runJsonIn(folder, "sessions", "get", step.sessionId, ...acme);
    expect(session).toMatchObject({ id: step.sessionId, length: 2 });
    const transcript = await runIn(folder, ["sessions", "transcript", step.sessionId, ...acme]);
    expect(transcript.output).toBe(
      "user       second\\u{1b}[2J\nassistant  You said: second\\u{1b}[2J\n",
    );
  });

  it("change a key, rotate it, list working keys and revoke all keys of a user", async () => {
    const aliases = ["--alias", "gpt-5=sim/tollgate/echo", "--alias", "fast=sim/tollgate/echo"];
    const words = ["--user", "bob", "--label", "laptop", "--model", "sim/*/*", ...aliases];
    words.push("--leading-system", "apart");
    const made = created.parse(await runJsonIn(folder, "keys", "create", ...acme, ...words));
    const { id } = made.key;
    expect(made.key).toMatchObject({
      models: ["sim/*/*"],
      aliases: { "gpt-5": "sim/tollgate/echo", fast: "sim/tollgate/echo" },
      leadingSystem: "apart",
    });
    const removed = ["--all-models", "--remove-aliases", "--leading-system", "gateway"];
    const change = ["--minimum-data-class", "D1_INTERNAL", "--label", "desk", ...removed];
    expect(await runJsonIn(folder, "keys", "update", id, ...acme, ...change)).toMatchObject({
      label: "desk",
      minimumDataClass: "D1_INTERNAL",
      models: null,
      aliases: null,
      leadingSystem: null,
    });
    const rotated = created.parse(await runJsonIn(folder, "keys", "rotate", id, "--overlap", "1h"));
    expect(rotated.secret).toMatch(/^tg_/);
    expect(rotated.secret).not.toBe(made.secret);
    expect(rotated.key.id).toBe(id);
    const bobs = ["keys", "list", ...acme, "--user", "bob"];
    const listed = async (...more: readonly string[]) =>
      page.parse(await runJsonIn(folder, ...bobs, ...more)).data.map((row) => row.id);
    expect(await listed("--live", "--label", "desk")).toEqual([id]);
    expect(await listed("--no-live")).toEqual([]);
    const revoked = await runJsonIn(folder, "keys", "revoke", "--user", "bob", ...acme);
    expect(revoked).toEqual({ revoked: 1 });
    const again = await runIn(folder, ["keys", "revoke", "--user", "bob", ...acme]);
    expect(again.output).toBe("this user has no active keys\n");
    expect(await listed("--live")).toEqual([]);
    expect(await listed("--no-live")).toEqual([id]);
  }, 30_000);

  it("revoke a key", async () => {
    const revoked = await runJsonIn(
      folder,
      "keys",
      "revoke",
      key.key.id,
      ...acme,
      "--actor",
      "ops",
    );
    expect(revoked).toMatchObject({ id: key.key.id, revokedAt: expect.any(String) });
    expect(await runJsonIn(folder, "keys", "get", key.key.id, ...acme)).toEqual(revoked);
  });

  it("correct the cost of a Step", async () => {
    const { data } = page.parse(await runJsonIn(folder, "steps", "--limit", "1"));
    const words = ["steps", "correct", String(data[0]?.id), ...acme, "--reason", "the invoice"];
    const tokens = ["--prompt-tokens", "7", "--completion-tokens", "1"];
    const cost = ["--cost-usd", "0.5"];
    expect(await runJsonIn(folder, ...words, ...tokens, ...cost, "--actor", "ops")).toMatchObject({
      costNanoUsd: 500_000_000,
      totalTokens: 8,
      attempts: [{ recorded: { totalTokens: 7 }, corrections: [{ actor: "ops" }] }],
    });
    const half = await runIn(folder, [...words, "--prompt-tokens", "7"]);
    expect(half).toMatchObject({ code: 2, errors: expect.stringContaining("together") });
    expect((await runIn(folder, words)).code).toBe(2);
  }, 30_000);

  it("create, show, replace and remove a rate limit", async () => {
    const words = ["rate-limits", "create", "rpm", "--requests", "600", "--per", "minute"];
    expect(await runJsonIn(folder, ...words, "--each", "model", "--key", "k")).toMatchObject({
      id: "rpm",
      unit: "requests",
      limit: 600,
      per: "minute",
      burst: 60,
      scope: { each: "model", key: ["k"] },
      origin: "created",
    });
    expect((await runIn(folder, ["rate-limits"])).output).toMatch(
      /rpm +600 requests per minute +60/,
    );
    expect(await runJsonIn(folder, "rate-limits", "status", "rpm")).toEqual({
      data: [],
      nextCursor: null,
    });
    const fewer = ["rate-limits", "update", "rpm", "--concurrent-steps", "4"];
    expect(await runJsonIn(folder, ...fewer)).toMatchObject({ unit: "steps", limit: 4, per: null });
    expect((await runIn(folder, ["rate-limits", "get", "rpm"])).output).toMatch(
      /4 steps in flight/,
    );
    expect(await runIn(folder, ["rate-limits", "create", "none"])).toMatchObject({ code: 2 });
    expect(await runJsonIn(folder, "rate-limits", "remove", "rpm")).toEqual({
      id: "rpm",
      removed: true,
    });
  }, 60_000);

  it("create, show and remove a budget", async () => {
    const words = ["budgets", "create", "a-day", "--usd", "12.50", "--period", "day"];
    expect(await runJsonIn(folder, ...words, "--each", "key")).toMatchObject({
      id: "a-day",
      unit: "usd",
      limit: 12_500_000_000,
      mode: "hard",
      scope: { each: "key" },
    });
    expect((await runIn(folder, ["budgets"])).output).toMatch(/a-day +\$12\.50 +day +hard/);
    expect(await runJsonIn(folder, "budgets", "get", "a-day")).toMatchObject({
      id: "a-day",
      origin: "created",
    });
    await runJsonIn(folder, ...words.with(2, "acme-day"), "--organization", "acme");
    const listed = z.object({ data: z.array(z.looseObject({ id: z.string() })) });
    const { data } = listed.parse(
      await runJsonIn(folder, "budgets", "list", "--organization", "globex"),
    );
    expect(data.map(({ id }) => id)).toEqual(["a-day"]);
    expect(await runJsonIn(folder, "budgets", "status", "a-day")).toEqual({
      data: [],
      nextCursor: null,
    });
    expect(await runJsonIn(folder, "budgets", "remove", "a-day")).toEqual({
      id: "a-day",
      removed: true,
    });
  });

  it("update, raise and reconcile a budget", async () => {
    await runJsonIn(folder, "budgets", "create", "b-day", "--usd", "1", "--period", "day");
    const lower = ["budgets", "update", "b-day", "--usd", "2", "--period", "day"];
    expect(await runJsonIn(folder, ...lower, "--warn-at", ".5", "--warn-at", "1")).toMatchObject({
      limit: 2_000_000_000,
      scope: {},
      warnAt: [0.5, 1],
    });
    const until = ["--until", "2126-01-01"];
    const raise = z
      .looseObject({ id: z.string() })
      .parse(await runJsonIn(folder, "budgets", "raise", "b-day", "--usd", "0.25", ...until));
    expect(raise).toMatchObject({ amount: 250_000_000, until: "2126-01-01T00:00:00.000Z" });
    expect((await runIn(folder, ["budgets", "raises", "b-day"])).output).toMatch(/\$0\.25 +2126/);
    expect((await runIn(folder, lower)).output).toMatch(/^limit +\$2\.00$/m);
    expect(await runJsonIn(folder, "budgets", "cancel-raise", "b-day", raise.id)).toEqual({
      id: "b-day",
      raiseId: raise.id,
      cancelled: true,
    });
    expect((await runIn(folder, ["budgets", "raises", "b-day"])).output).toBe("no records\n");
    expect(await runIn(folder, ["budgets", "raise", "b-day", ...until])).toMatchObject({ code: 2 });
    expect(await runJsonIn(folder, "budgets", "reconcile")).toEqual({ counters: 0, drift: [] });
    const at = ["--at", "2026-01-01", "--subject", key.key.id];
    expect(await runJsonIn(folder, "budgets", "status", "b-day", ...at)).toMatchObject({
      data: [],
    });
  }, 30_000);

  it("migrate, recover and sweep", async () => {
    expect(await runJsonIn(folder, "migrate")).toEqual({ upToDate: true });
    expect(await runJsonIn(folder, "migrate", "--check")).toEqual({ upToDate: true });
    expect(await runJsonIn(folder, "recover")).toEqual({ recovered: 0 });
    expect(await runJsonIn(folder, "sweep")).toEqual({ removed: 0 });
    expect((await runIn(folder, ["sweep"])).output).toBe(
      "Responses, Steps and transcripts removed: 0\n",
    );
  }, 30_000);
});

describe("what goes wrong", () => {
  it.each([
    [
      "an unknown id",
      ["steps", "get", "missing"],
      "error: Unknown id: this organization has no such Step.",
    ],
    ["a missing file", ["activity", "--config", "no.ts"], "no.ts\n"],
  ])("fails for %s with exit code 1 and one line", async (_name, words, line) => {
    const { code, errors } = await runIn(folder, words);
    expect(code).toBe(1);
    expect(errors).toContain(line);
    expect(errors.trimEnd().split("\n")).toHaveLength(1);
  });

  it.each([
    ["throws.mjs", "throw new Error('broken\\nhere')", /could not be loaded: broken · here\n$/],
    ["empty.mjs", "export const gateway = {}", /must default-export the options of createGateway/],
    [
      "wrong.mjs",
      "export default { store: {}, providers: {} }",
      /`store` must be a store of contract 1.* · `providers` must name at least one gateway\.\n$/,
    ],
  ])("reports the problem in the configuration %s", async (name, source, line) => {
    writeFileSync(join(folder, name), source);
    const { code, errors } = await runIn(folder, ["activity", "--config", name]);
    expect(code).toBe(1);
    expect(errors).toMatch(line);
    expect(errors.trimEnd().split("\n")).toHaveLength(1);
  });

  it.each([
    ["keys revoke", ["keys", "revoke"], "pass either the id of a key or --user"],
    ["keys revoke --user", ["keys", "revoke", "--user", "ada"], "--user requires --organization"],
    [
      "keys revoke ID --user",
      ["keys", "revoke", "x", "--user", "ada"],
      "pass either the id of a key",
    ],
    ["keys rotate --overlap", ["keys", "rotate", "x", "--overlap", "soon"], "a duration such as"],
    ["a day that no month has", ["steps", "--from", "2026-02-30"], "a time such as"],
    ["an hour of one digit", ["steps", "--from", "2026-02-03T1:00Z"], "a time such as"],
    [
      "keys update without a change",
      ["keys", "update", "x", "--organization", "acme"],
      "pass what to change: --default-data-class, --minimum-data-class, --model, --alias, --leading-system, --expires-at, --label, --all-models, --remove-aliases or --never-expires",
    ],
    [
      "budgets update without a limit",
      ["budgets", "update", "x", "--period", "day"],
      "pass exactly one of --usd, --tokens and --requests",
    ],
    [
      "rate-limits update without a limit",
      ["rate-limits", "update", "x"],
      "pass exactly one of --requests, --tokens and --concurrent-steps",
    ],
    [
      "steps correct without a correction",
      ["steps", "correct", "x", "--organization", "acme", "--reason", "the invoice"],
      "pass --cost-usd, or --prompt-tokens and --completion-tokens, or all three",
    ],
    [
      "keys update with two limits",
      ["keys", "update", "x", "--model", "a/b/c", "--all-models"],
      "pass either --model or --all-models",
    ],
  ])("rejects %s with exit code 2 and one line", async (_name, words, line) => {
    const { code, errors } = await runIn(folder, words);
    expect(code).toBe(2);
    expect(errors).toContain(line);
    expect(errors.trimEnd().split("\n")).toHaveLength(1);
  });

  it.each(["activity list", "activity export"])(
    "exits with 1 if the output of %s can't be written",
    async (words) => {
      const path = join(folder, words);
      writeFileSync(path, "");
      const readOnly = openSync(path, "r");
      const { code, errors } = await run(folder, words.split(" "), {}, undefined, readOnly);
      closeSync(readOnly);
      expect(errors).toMatch(/^error: can't write to standard output: EBADF/);
      expect(code).toBe(1);
    },
  );

  it("says of a list that can't be read no more than is true", async () => {
    const unreadable = temporaryFolder();
    mkdirSync(join(unreadable, "tollgate.db"));
    const { code, errors } = await runIn(unreadable, ["keys", "list"]);
    expect(code).toBe(1);
    expect(errors).toMatch(/^error: The store failed\. If this was a change, .*can't open/);
  });

  it("exits with 2 for an unknown command", async () => {
    const { code, errors, output } = await runIn(folder, ["nonsense"]);
    expect({ code, errors, output }).toEqual({
      code: 2,
      errors: "error: unknown command 'nonsense'\n",
      output: "",
    });
  });

  it("finds a configuration in the working directory", async () => {
    const own = temporaryFolder();
    writeFileSync(join(own, "tollgate.config.ts"), "export default { found: true as const }");
    const { errors } = await runIn(own, ["activity"]);
    expect(errors).toContain(join(own, "tollgate.config.ts"));
  });
});
