import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Gateway } from "@tollgate/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { temporaryFolder } from "./command-line.ts";
import { type AdminServer, adminToken, openAdministered, runHere } from "./in-process.ts";

const folder = temporaryFolder();
const secret = "sk-canary-4711";

let configuration = "";
let gateway: Gateway;
let admin: AdminServer;

beforeAll(async () => {
  ({ configuration, gateway, admin } = await openAdministered(folder));
}, 30_000);

afterAll(async () => {
  await admin.close();
  await gateway.close();
});

/** Writes a file of organizations, and returns its options. */
function fileOf(name: string, organizations: object): readonly string[] {
  const file = join(folder, name);
  writeFileSync(file, stringify({ organizations }));
  return ["-f", file];
}

const here = (...words: readonly string[]) =>
  runHere(["apply", ...words, "--config", configuration], { OWN_KEY: secret });
const remote = (...words: readonly string[]) =>
  runHere(["apply", ...words], {
    TOLLGATE_URL: admin.url,
    TOLLGATE_TOKEN: adminToken,
    OWN_KEY: secret,
  });

const team = {
  keys: { app: { user: "app", models: ["sim/*/*"], aliases: { fast: "sim/tollgate/echo" } } },
  budgets: { month: { limit: { usd: "50" }, period: "month", scope: { each: "user" } } },
  rateLimits: { pace: { limit: { requests: 600 }, per: "minute" } },
  connections: { own: { variable: "OWN_KEY" } },
};

describe("tollgate apply", () => {
  it("creates fifty teams from one file, and changes nothing in a second run", async () => {
    const teams = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`team-${at}`, team]));
    const file = fileOf("fifty.yaml", teams);
    const keys = join(folder, "fifty.secrets");
    const applied = await remote(...file, "--yes", "--secrets-out", keys);
    expect(applied).toMatchObject({ code: 0, errors: "" });
    expect(applied.output).toMatch(/\napplied: 200 create, 0 update, 0 remove, 0 unchanged\n$/);
    expect(statSync(keys).mode & 0o777).toBe(0o600);
    const lines = readFileSync(keys, "utf8").trimEnd().split("\n");
    expect(lines).toHaveLength(50);
    const [first] = lines.map((line) => JSON.parse(line));
    expect(first).toMatchObject({ organizationId: "team-0", userId: "app", label: "team-0/app" });
    expect(applied.output).not.toContain(first.secret);
    expect(applied.output).not.toContain(secret);
    const answered = await gateway.fetch("http://in-process/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${first.secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "fast", messages: [{ role: "user", content: "Hi" }] }),
    });
    expect(answered.status).toBe(200);
    for (const again of [await here(...file, "--yes", "--prune"), await remote(...file)])
      expect(again).toEqual({
        code: 0,
        errors: "",
        output: "plan: 0 create, 0 update, 0 remove, 200 unchanged\n",
      });
    const { data } = await gateway.changes.list({ organizationId: "team-7" });
    expect(data.map(({ actor }) => actor)).toEqual(["ada", "ada", "ada", "ada"]);
  }, 60_000);

  it("shows what differs, and changes it only with --yes", async () => {
    const file = fileOf("one.yaml", { one: team });
    await here(...file, "--yes", "--secrets-out", join(folder, "one.secrets"));
    const changed = {
      keys: { app: { user: "app", expiresAt: "2126-01-01" } },
      budgets: { month: { ...team.budgets.month, limit: { usd: 60 }, mode: "soft" } },
      rateLimits: { pace: { limit: { requests: 60 }, per: "second" } },
    };
    fileOf("one.yaml", { one: changed });
    const before = await gateway.budgets.get({ id: "one/month" });
    for (const [words, code] of [
      [["--dry-run"], 0],
      [[], 1],
    ] as const) {
      const { output, ...ended } = await here(...file, ...words);
      expect(ended.code).toBe(code);
      expect(output).toMatch(
        /update +budget +one +one\/month +limit \$50\.00 → \$60\.00, mode hard → soft\n/,
      );
      expect(output).toMatch(
        /update +rate limit +one +one\/pace +limit 600 requests → 60 requests, per minute → second, burst 60 → 6\n/,
      );
      expect(output).toMatch(
        /update +key +one +one\/app +models \["sim\/\*\/\*"\] → -, aliases .* → -, expiresAt - → 2126-01-01T00:00:00\.000Z\n/,
      );
    }
    expect(await gateway.budgets.get({ id: "one/month" })).toEqual(before);
    const applied = await here(...file, "--yes", "--json");
    expect(JSON.parse(applied.output)).toMatchObject({
      applied: true,
      create: 0,
      update: 3,
      unchanged: 0,
    });
    expect(await gateway.budgets.get({ id: "one/month" })).toMatchObject({
      limit: 60e9,
      mode: "soft",
    });
    expect(await gateway.rateLimits.get({ id: "one/pace" })).toMatchObject({ limit: 60, burst: 6 });
    expect((await here(...file)).output).toBe("plan: 0 create, 0 update, 0 remove, 3 unchanged\n");
  });

  it("changes nothing in a second run if a key has an empty set of aliases", async () => {
    const file = fileOf("bare.yaml", { bare: { keys: { app: { user: "app", aliases: {} } } } });
    await here(...file, "--yes", "--secrets-out", join(folder, "bare.secrets"));
    expect((await here(...file)).output).toBe("plan: 0 create, 0 update, 0 remove, 1 unchanged\n");
  });

  it("removes only what it made, and only with --prune", async () => {
    const file = fileOf("two.yaml", { two: team });
    await here(...file, "--yes", "--secrets-out", join(folder, "two.secrets"));
    const organizationId = "two";
    await gateway.keys.create({ organizationId, userId: "eve", label: "by hand" });
    const scope = { organization: "two" };
    await gateway.budgets.create({ id: "by-hand", scope, limit: { usd: 1 }, period: "day" });
    const both = { organization: ["two", "three"] };
    await gateway.budgets.create({ id: "two/both", scope: both, limit: { usd: 1 }, period: "day" });
    fileOf("two.yaml", { two: {} });
    expect((await here(...file, "--yes")).output).toBe(
      "plan: 0 create, 0 update, 0 remove, 0 unchanged\n",
    );
    const { output } = await remote(...file, "--prune", "--yes");
    expect(output).toMatch(/\napplied: 0 create, 0 update, 3 remove, 0 unchanged\n$/);
    const keys = (await gateway.keys.list({ organizationId, live: true })).data;
    expect(keys.map(({ label }) => label)).toEqual(["by hand"]);
    const budgets = (await gateway.budgets.list({ organizationId })).data;
    expect(budgets.map(({ id }) => id)).toEqual(["by-hand", "two/both"]);
    expect((await gateway.connections.list({ organizationId })).data).toHaveLength(1);
  });

  it("sets the credential of an existing connection only with --replace-credentials", async () => {
    const file = fileOf("byok.yaml", { byok: { connections: team.connections } });
    await here(...file, "--yes");
    const [before] = (await gateway.connections.list({ organizationId: "byok" })).data;
    expect((await here(...file)).output).toMatch(/1 unchanged/);
    const replaced = await here(...file, "--replace-credentials", "--yes");
    expect(replaced.output).toMatch(/update +connection +byok +own +credential\n/);
    const [after] = (await gateway.connections.list({ organizationId: "byok" })).data;
    expect(Date.parse(after?.updatedAt ?? "")).toBeGreaterThan(Date.parse(before?.updatedAt ?? ""));
  });

  it("makes the rest after a failure", async () => {
    const connections = { own: { file: join(folder, "later") } };
    const file = fileOf("late.yaml", { late: { ...team, connections } });
    const words = [...file, "--yes", "--secrets-out", join(folder, "late.secrets")];
    const budgetsFirst = await here(...words);
    expect(budgetsFirst).toMatchObject({ code: 1, output: "" });
    expect(budgetsFirst.errors).toMatch(
      /can't create connection own: .*\(ENOENT\) \(0 of 4 changes/,
    );
    writeFileSync(join(folder, "later"), `${secret}\n`);
    const unwritten = await here(...words);
    expect(unwritten).toMatchObject({ code: 1, errors: expect.stringContaining("already exists") });
    const rest = await here(...file, "--yes", "--secrets-out", join(folder, "late.more"));
    expect(rest).toMatchObject({ code: 0, output: expect.stringContaining("applied: 4 create") });
  });

  it("requires a new file for the secrets of new keys", async () => {
    const file = fileOf("keys.yaml", { keys: { keys: team.keys } });
    const ended = await here(...file, "--yes");
    expect(ended).toMatchObject({ code: 2, errors: expect.stringContaining("--secrets-out") });
    expect((await gateway.keys.list({ organizationId: "keys" })).data).toEqual([]);
  });

  it("doesn't guess between two keys, and changes no user and no period", async () => {
    const file = fileOf("fixed.yaml", { fixed: { keys: team.keys, budgets: team.budgets } });
    await here(...file, "--yes", "--secrets-out", join(folder, "fixed.secrets"));
    const errorsOf = async (organization: object) => {
      fileOf("fixed.yaml", { fixed: organization });
      return (await here(...file)).errors;
    };
    expect(await errorsOf({ keys: { app: { user: "other" } } })).toContain("belongs to user app");
    const daily = { month: { ...team.budgets.month, period: "day" } };
    expect(await errorsOf({ budgets: daily })).toContain(
      "counts usd per month, which can't change",
    );
    const twin = { organizationId: "fixed", userId: "app", label: "fixed/app" };
    await gateway.keys.create(twin);
    expect(await errorsOf({ keys: team.keys })).toContain("two keys with the label fixed/app");
  });
});

describe("a file of organizations", () => {
  const limit = { limit: { usd: 1 }, period: "day" };

  it.each([
    ["an unknown member", { a: { key: {} } }, "Unknown member: organizations.a.key."],
    ["a name with a slash", { "a/b": {} }, "without a slash"],
    ["no user", { a: { keys: { k: {} } } }, "`organizations.a.keys.k.user` is required"],
    [
      "a wrong period",
      { a: { budgets: { b: { ...limit, period: "year" } } } },
      "`organizations.a.budgets.b.period` must be",
    ],
    [
      "an id",
      { a: { budgets: { b: { ...limit, id: "x" } } } },
      "`organizations.a.budgets.b.id` is not allowed",
    ],
    [
      "another organization",
      { a: { budgets: { b: { ...limit, scope: { organization: "b" } } } } },
      "`organizations.a.budgets.b.scope.organization` is not allowed",
    ],
    [
      "no period",
      { a: { rateLimits: { r: { limit: { requests: 1 } } } } },
      "`organizations.a.rateLimits.r.per` must be",
    ],
    [
      "a credential",
      { a: { connections: { own: secret } } },
      "`organizations.a.connections.own` must be { variable } or { file }",
    ],
    [
      "a variable that is undefined",
      { a: { keys: { k: { user: `$${"{NOBODY}"}` } } } },
      "uses NOBODY, which is undefined",
    ],
    [
      "too many organizations",
      Object.fromEntries(Array.from({ length: 1_001 }, (_, at) => [`o${at}`, {}])),
      "`organizations` must have at most 1000 members",
    ],
  ])("is rejected with its path for %s", async (_name, organizations, line) => {
    const ended = await here(...fileOf("wrong.yaml", organizations), "--yes");
    expect(ended).toMatchObject({ code: 1, output: "", errors: expect.stringContaining(line) });
    expect(ended.errors).not.toContain(secret);
  });
});
