import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import type { Gateway } from "@tollgate/core";
import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProgram } from "../src/main.ts";
import { temporaryFolder } from "./command-line.ts";
import { type AdminServer, adminToken, openAdministered, runHere } from "./in-process.ts";

const folder = temporaryFolder();
const prices = join(folder, "prices.json");
const teams = join(folder, "teams.json");
const acme = ["--organization", "acme"];

let configuration = "";
let gateway: Gateway;
let admin: AdminServer;
/** The ids of records, by their noun. */
const ids = { key: "", step: "", session: "", decision: "", raise: "", token: "" };

/** One record of each kind. */
beforeAll(async () => {
  writeFileSync(teams, JSON.stringify({ organizations: { acme: {} } }));
  writeFileSync(prices, JSON.stringify({ "sim/tollgate/echo": { input: 1, output: 1 } }));
  ({ configuration, gateway, admin } = await openAdministered(folder));
  const organizationId = "acme";
  const { key, secret } = await gateway.keys.create({ organizationId, userId: "bob", label: "ci" });
  const sent = await gateway.fetch("http://in-process/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "sim/tollgate/echo",
      messages: [{ role: "user", content: "Hi" }],
    }),
  });
  await sent.text();
  const [step] = (await gateway.steps.list({ organizationId })).data;
  const limited = { scope: { organization: "acme" }, actor: "setup" };
  await gateway.budgets.create({
    id: "b",
    ...limited,
    limit: { usd: 5 },
    period: "month",
    warnAt: [0.5],
  });
  const raise = await gateway.budgets.raise({ id: "b", by: { usd: 1 }, until: "2126-01-01" });
  await gateway.rateLimits.create({ id: "r", ...limited, limit: { requests: 60 }, per: "minute" });
  await gateway.connections.set({ organizationId, gateway: "own", apiKey: "sk-canary-1" });
  const { token } = await gateway.adminTokens.create({
    label: "bo",
    role: "viewer",
    organizations: "all",
  });
  Object.assign(ids, {
    key: key.id,
    step: step?.id,
    session: step?.sessionId,
    decision: step?.decisionId,
    raise: raise.id,
    token: token.id,
  });
}, 30_000);

afterAll(async () => {
  await admin.close();
  await gateway.close();
});

/** Runs a command over the admin API. */
const remote = (words: readonly string[], environment = {}) =>
  runHere(words, { TOLLGATE_URL: admin.url, TOLLGATE_TOKEN: adminToken, ...environment });

/** Puts the ids of records in place of the names of their nouns. */
const named = (words: readonly string[]) =>
  words.map((word) => (/^[A-Z]+$/.test(word) ? Reflect.get(ids, word.toLowerCase()) : word));

/** The names of all commands that do something: `keys list`. */
function commandsOf(command: Command, path: readonly string[] = []): readonly string[] {
  const own = command.commands.filter((each) => each.name() !== "help");
  if (own.length === 0) return [path.join(" ")];
  return own.flatMap((each) => commandsOf(each, [...path, each.name()]));
}

/** The name of the command that words run. `list` is a noun's default. */
function nameOf(words: readonly string[]): string {
  const [noun = "", verb = ""] = words;
  const known = commandsOf(createProgram());
  return [`${noun} ${verb}`, noun, `${noun} list`].find((name) => known.includes(name)) ?? "";
}

describe("a command at a URL", () => {
  const reads: readonly (readonly string[])[] = [
    ["admin-tokens"],
    ["admin-tokens", "get", "TOKEN"],
    ["apply", "--file", teams, "--dry-run"],
    ["export", "changes"],
    ["export", "decisions", "--format", "jsonl"],
    ["export", "focus"],
    ["usage", "reconcile"],
    ["keys"],
    ["keys", "list", "--user", "bob", "--live", ...acme],
    ["keys", "get", "KEY"],
    ["budgets"],
    ["budgets", "get", "b"],
    ["budgets", "status", "b"],
    ["budgets", "raises", "b"],
    ["budgets", "reconcile"],
    ["rate-limits"],
    ["rate-limits", "get", "r"],
    ["rate-limits", "status", "r"],
    ["connections"],
    ["connections", "get", "own", ...acme],
    ["activity", "--model", "sim/*/*", "--limit", "5"],
    ["activity", "summarize", "--by", "key,day"],
    ["activity", "export"],
    ["steps", "--class-up-to", "D2_CONFIDENTIAL", "--from", "2026-01-01"],
    ["steps", "get", "STEP", ...acme],
    ["steps", "content", "STEP"],
    ["steps", "summarize", "--by", "outcome"],
    ["steps", "export", "--format", "jsonl"],
    ["steps", "series", "--bucket", "day"],
    ["steps", "reprice", "--prices", prices],
    ["sessions"],
    ["sessions", "get", "SESSION"],
    ["sessions", "lineage", "SESSION"],
    ["sessions", "transcript", "SESSION"],
    ["decisions", "--effect", "permit"],
    ["decisions", "get", "DECISION"],
    ["decisions", "export"],
    ["changes", "--kind", "key.created"],
    ["models"],
    ["models", "--limit", "1"],
    ["policy"],
    ["recover"],
    ["sweep"],
    ["keys", "get", "nobody"],
    ["budgets", "get", "none"],
    ["steps", "get", "STEP", "--organization", "rival"],
  ];

  const budget = ["--usd", "2", "--period", "day", ...acme];
  const changes: readonly (readonly string[])[] = [
    ["admin-tokens", "revoke", "TOKEN"],
    ["admin-tokens", "create", "--label", "cy", "--role", "viewer", "--all-organizations"],
    ["keys", "update", "EVE", "--model", "sim/*/*", "--alias", "fast=sim/tollgate/echo"],
    ["keys", "rotate", "EVE", "--overlap", "1h"],
    ["keys", "revoke", "--user", "eve", ...acme],
    ["keys", "revoke", "EVE"],
    ["budgets", "create", "day", ...budget],
    ["budgets", "update", "day", ...budget],
    ["budgets", "raise", "day", "--usd", "1", "--until", "2126-01-01"],
    ["budgets", "cancel-raise", "b", "RAISE"],
    ["budgets", "remove", "day"],
    ["rate-limits", "create", "few", "--concurrent-steps", "4", ...acme],
    ["rate-limits", "update", "few", "--concurrent-steps", "5", ...acme],
    ["rate-limits", "remove", "few"],
    ["connections", "set", "own", ...acme, "--from-environment", "OWN_KEY"],
    ["connections", "reseal"],
    ["connections", "remove", "own", ...acme],
    ["steps", "correct", "STEP", ...acme, "--reason", "the invoice", "--cost-usd", "0.5"],
    ["steps", "reprice", "--prices", prices, "--apply"],
  ];

  /** About this machine, about no gateway, or about evidence: who verifies it reads the database, not a server's word. */
  const local = [
    "check",
    "evidence anchor",
    "evidence key",
    "evidence verify",
    "import litellm",
    "migrate",
    "schema config",
    "serve",
  ];

  it("is every command that concerns a gateway's administration", () => {
    const tried = new Set([...reads, ...changes, ["keys", "create"], ["status"]].map(nameOf));
    const others = commandsOf(createProgram()).filter((name) => !tried.has(name));
    expect(others.toSorted()).toEqual(local);
  });

  it.each(reads.map((words) => [words.join(" "), words] as const))(
    "prints what it prints here: %s",
    async (_name, words) => {
      for (const format of [[], ["--json"]]) {
        const here = await runHere([...named(words), ...format, "--config", configuration]);
        expect(here.output + here.errors).not.toBe("");
        expect(await remote([...named(words), ...format])).toEqual(here);
      }
    },
  );

  it("makes changes as the owner of the token", async () => {
    const made = await remote([
      "keys",
      "create",
      ...acme,
      "--user",
      "eve",
      "--label",
      "new",
      "--json",
    ]);
    const { key, secret } = JSON.parse(made.output);
    expect(secret).toMatch(/^tg_/);
    Object.assign(ids, { eve: key.id });
    for (const words of changes)
      expect(await remote(named(words), { OWN_KEY: "sk-canary-2" })).toMatchObject({
        code: 0,
        errors: "",
      });
    const listed = await remote(["changes", "--limit", "100", "--json"]);
    const kinds = JSON.parse(listed.output)
      .data.filter(({ actor }: { readonly actor: string | null }) => actor === "ada")
      .map(({ kind }: { readonly kind: string }) => kind);
    expect(new Set(kinds)).toEqual(
      new Set([
        "key.created",
        "key.updated",
        "key.rotated",
        "key.revoked",
        "budget.created",
        "budget.updated",
        "budget.raised",
        "budget.raise_cancelled",
        "budget.removed",
        "rate_limit.created",
        "rate_limit.updated",
        "rate_limit.removed",
        "connection.set",
        "connection.removed",
        "correction",
        "transcript.read",
        "admin_token.created",
        "admin_token.revoked",
      ]),
    );
  });

  it("tells how busy the gateway there is, and nothing of a process that only asks", async () => {
    const there = await remote(["status", "--json"]);
    expect(there).toMatchObject({ code: 0, errors: "" });
    expect(JSON.parse(there.output)).toMatchObject({ openSteps: 0, closing: false });
    expect((await remote(["status"])).output).toMatch(/^openSteps +0\n/);
    const here = await runHere(["status", "--config", configuration]);
    expect(here).toMatchObject({ code: 2, output: "" });
    expect(here.errors).toContain("pass its --url");
  });

  it("prints a transcript of any length", async () => {
    const messages = Array.from({ length: 1_050 }, (_, at) => ({
      role: "user",
      content: `m${at}`,
    }));
    const { secret } = await gateway.keys.create({
      organizationId: "acme",
      userId: "writer",
      label: "long",
    });
    const answer = await gateway.fetch("http://in-process/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "sim/tollgate/echo", messages }),
    });
    await answer.text();
    const [session] = (await gateway.sessions.list({ organizationId: "acme", user: "writer" }))
      .data;
    const printed = await remote(["sessions", "transcript", session?.id ?? ""]);
    const lines = printed.output.trimEnd().split("\n");
    expect(lines.slice(0, 1_050)).toEqual(messages.map(({ content }) => `user       ${content}`));
    expect(lines).toHaveLength(1_051);
  });

  it("says that a filter is too long for a URL", async () => {
    const users = Array.from({ length: 900 }, (_, at) => [
      "--user",
      `a-user-with-the-number-${at}`,
    ]);
    const { code, errors } = await remote(["steps", ...users.flat()]);
    expect([code, errors]).toEqual([
      1,
      "error: The parameters are too long for a URL: name fewer of them.\n",
    ]);
  });

  it("takes the token from a file, and the URL from an option", async () => {
    const file = join(folder, "token");
    writeFileSync(file, `${adminToken}\n`);
    const words = ["keys", "get", ids.key, "--json"];
    const answered = await runHere([...words, "--url", `${admin.url}/`, "--token-file", file]);
    expect(answered).toEqual(await remote(words));
    expect(answered.code).toBe(0);
  });
});

describe("a URL", () => {
  const valid = { TOLLGATE_URL: "http://127.0.0.1:1", TOLLGATE_TOKEN: "a-token" };

  it.each([
    [2, ["keys", "--actor", "bob"], valid, "the actor is the owner of the token"],
    [2, ["keys", "--config", "x.yaml"], valid, "pass either --config or a URL"],
    [2, ["keys"], { ...valid, TOLLGATE_TOKEN: "" }, "TOLLGATE_TOKEN"],
    [1, ["keys"], { ...valid, TOLLGATE_TOKEN: "two words" }, "must be visible ASCII characters"],
    [1, ["keys", "--token-file", "/nowhere/token"], valid, "can't be read (ENOENT)"],
    [1, ["keys"], { ...valid, TOLLGATE_URL: "localhost:80" }, "`url` must be where the admin API"],
    [1, ["keys"], { ...valid, TOLLGATE_URL: "http://ops.example" }, "`url` must be https"],
    [1, ["budgets", "get", ".."], valid, "`id` can't be sent in a path"],
    [2, ["keys", "--url", ""], {}, "--url is empty"],
    [2, ["keys", "--insecure"], {}, "--insecure requires --url or TOLLGATE_URL"],
    [1, ["keys"], valid, "The admin API didn't answer"],
    [1, ["keys"], { ...valid, TOLLGATE_URL: "http://127.0.0.1:2" }, "(connect ECONNREFUSED 127"],
    [1, ["steps", "reprice"], valid, "pass a file of prices with --prices"],
    [2, ["serve"], valid, "'serve' works with the configuration of this machine"],
    [2, ["migrate"], valid, "'migrate' works with the configuration of this machine"],
    [2, ["check"], valid, "'check' works with the configuration of this machine"],
    [2, ["keys", "--token-file", "token"], {}, "--token-file requires --url or TOLLGATE_URL"],
  ])("ends with %i for %j %j: %s", async (code, words, environment, line) => {
    const ended = await runHere(words, environment);
    expect(ended).toMatchObject({ code, output: "", errors: expect.stringContaining(line) });
    expect(ended.errors.trimEnd().split("\n")).toHaveLength(1);
    expect(ended.errors).not.toMatch(/a-token|two words/);
  });

  it.each([
    [
      200,
      ["keys"],
      "This URL isn't an admin API of this release: it answered with something other than JSON. Check the URL, and use the same release on both sides.",
    ],
    [
      200,
      ["steps", "export"],
      "This URL isn't an admin API of this release: it answered with something other than a file. Check the URL, and use the same release on both sides.",
    ],
    [
      502,
      ["keys"],
      "The admin API didn't answer. If this was a change, its outcome is unknown: read the record before you retry. (something in its place answered with status 502)",
    ],
  ])(
    "says what a page with status %i in place of the admin API means to %j",
    async (status, words, problem) => {
      const html = { "content-type": "text/html" };
      const page = createServer((_, outgoing) => outgoing.writeHead(status, html).end("<html>"));
      await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve));
      const address = Object(page.address());
      const ended = await runHere(words, {
        ...valid,
        TOLLGATE_URL: `http://127.0.0.1:${address.port}`,
      });
      page.close();
      expect(ended).toEqual({ code: 1, output: "", errors: `error: ${problem}\n` });
    },
  );

  it("rejects an unknown token", async () => {
    expect(await remote(["keys"], { TOLLGATE_TOKEN: "stolen" })).toEqual({
      code: 1,
      output: "",
      errors: "error: Sign in to the admin API first.\n",
    });
  });
});
