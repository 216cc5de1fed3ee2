import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { chat, run, runJson, type Served, startServe, temporaryFolder } from "./command-line.ts";
import { runHere } from "./in-process.ts";

const folder = temporaryFolder();
const acme = ["--organization", "acme"];
let served: Served;
let admin = "";
/** A token for everything, made on the machine of the server. */
let token = { id: "", secret: "" };

beforeAll(async () => {
  served = await startServe(folder, ["--admin-port", "0"]);
  admin = /The admin API listens on (\S+)/.exec(served.announced)?.[1] ?? "";
  const label = ["--label", "ada", "--role", "admin", "--all-organizations"];
  const made: unknown = await runJson(
    folder,
    ...["admin-tokens", "create", ...label, "--transcripts-up-to", "D3_RESTRICTED"],
  );
  token = idAndSecret(made, "token");
}, 30_000);

afterAll(async () => {
  served.child.kill("SIGTERM");
  await served.exited;
});

function idAndSecret(made: unknown, noun: string): { id: string; secret: string } {
  const { secret, [noun]: record } = Object(made);
  return { id: String(record?.id), secret: String(secret) };
}

const environment = (secret = token.secret) => ({ TOLLGATE_URL: admin, TOLLGATE_TOKEN: secret });

/** Runs a command against the server, elsewhere than in its folder. */
const remote = (words: readonly string[], secret = token.secret) =>
  runHere(words, environment(secret));

async function remoteJson(...words: readonly string[]): Promise<unknown> {
  const { code, output, errors } = await remote([...words, "--json"]);
  expect([words, code, errors]).toEqual([words, 0, ""]);
  return JSON.parse(output);
}

const unknownToken =
  "error: This token is unknown, expired or revoked: create another with `tollgate admin-tokens create`.\n";

describe("tollgate serve --admin-port", () => {
  it("is not on the gateway's own port: the error says to check the URL", async () => {
    const elsewhere = { ...environment(), TOLLGATE_URL: served.url };
    for (const words of [["keys"], ["status"], ["budgets", "get", "b"]])
      expect(await runHere(words, elsewhere)).toMatchObject({
        code: 1,
        errors: expect.stringContaining("error: This URL isn't an admin API of this release"),
      });
  });

  it("is administered from elsewhere by every noun of the command line", async () => {
    expect(admin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const words = ["keys", "create", ...acme, "--user", "bo", "--label", "ci", "--json"];
    const made = await run(temporaryFolder(), words, environment());
    expect(made.errors).toBe("");
    const key = idAndSecret(JSON.parse(made.output), "key");
    expect((await chat(served.url, { secret: key.secret, text: "Hi" })).status).toBe(200);

    const teams = join(folder, "teams.json");
    const budgets = { month: { limit: { usd: 9 }, period: "month" } };
    writeFileSync(teams, JSON.stringify({ organizations: { acme: { budgets } } }));
    const limit = ["--usd", "5", "--period", "month", ...acme];
    const commands: readonly (readonly string[])[] = [
      ["keys", "update", key.id, "--label", "cd"],
      ["budgets", "create", "b", ...limit],
      ["budgets", "raise", "b", "--usd", "1", "--until", "2126-01-01"],
      ["rate-limits", "create", "r", "--concurrent-steps", "4", ...acme],
      ["apply", "-f", teams, "--yes"],
      ["connections"],
      ["activity"],
      ["steps", "summarize", "--by", "model"],
      ["sessions"],
      ["decisions"],
      ["admin-tokens"],
      ["recover"],
      ["sweep"],
    ];
    for (const command of commands) {
      const { code, errors } = await remote(command);
      expect([command, code, errors]).toEqual([command, 0, ""]);
    }
    expect(await remoteJson("budgets", "get", "acme/month")).toMatchObject({
      limit: 9_000_000_000,
    });
    const { data } = Object(await remoteJson("sessions"));
    const transcript = await remote(["sessions", "transcript", data[0].id]);
    expect(transcript.output).toContain("Hi");
    const changes = Object(await remoteJson("changes"));
    const actors = changes.data.map(({ kind, actor }: Readonly<Record<string, string>>) => [
      kind,
      actor,
    ]);
    const ada = `ada/${token.id}`;
    for (const kind of ["key.created", "budget.raised", "rate_limit.created", "transcript.read"])
      expect(actors).toContainEqual([kind, ada]);
  });

  it("limits a token to its role and its organizations, and ends it when it is revoked", async () => {
    const create = ["admin-tokens", "create", "--label", "bo", "--role", "viewer"];
    const made = idAndSecret(await remoteJson(...create, ...acme), "token");
    const asBo = (...words: readonly string[]) => remote(words, made.secret);
    expect((await asBo("keys")).code).toBe(0);
    expect((await asBo("keys", "list", "--organization", "rival")).errors).toContain(
      "Unknown organization",
    );
    for (const words of [create, ["sweep"], ["keys", "create", "--user", "u", "--label", "l"]])
      expect((await asBo(...words, ...(words[0] === "sweep" ? [] : acme))).errors).toMatch(
        /requires (?:the role|a grant)/,
      );
    await remoteJson("admin-tokens", "revoke", made.id);
    expect((await asBo("keys")).errors).toBe(unknownToken);
  });

  it("accepts no API key, and its tokens open nothing on the gateway's own port", async () => {
    const words = ["keys", "create", ...acme, "--user", "bo", "--label", "other"];
    const key = idAndSecret(await remoteJson(...words), "key");
    expect((await remote(["keys"], key.secret)).errors).toBe(
      "error: Sign in to the admin API first.\n",
    );
    expect((await chat(served.url, { secret: token.secret, text: "Hi" })).status).toBe(401);
    const path = "/admin/v1/keys";
    const headers = { authorization: `Bearer ${token.secret}` };
    expect((await fetch(served.url + path, { headers })).status).toBe(404);
    expect((await fetch(admin + path, { headers })).status).toBe(200);
  });

  it("logs each request of the admin API that fails, with its id", async () => {
    const headers = { authorization: "Bearer tga_unknown" };
    const answer = await fetch(`${admin}/admin/v1/keys?limit=canary`, { headers });
    const id = answer.headers.get("x-request-id");
    const line = await vi.waitFor(() => {
      const found = served
        .errors()
        .split("\n")
        .find((text) => text.includes(`${id}`));
      expect(found).toBeDefined();
      return found ?? "";
    });
    expect(JSON.parse(line)).toEqual({
      level: "warn",
      time: expect.stringMatching(/Z$/),
      event: "admin.failed",
      requestId: id,
      operation: "keys.list",
      code: "admin_unauthenticated",
      status: 401,
    });
  });

  it("writes no secret of a token to its records or its log", async () => {
    const { output } = await remote(["admin-tokens", "get", token.id]);
    expect(output).toContain(token.id);
    const files = readdirSync(folder).filter((name) => name.startsWith("tollgate.db"));
    expect(files).not.toEqual([]);
    const texts = files.map((name) => readFileSync(join(folder, name), "latin1"));
    for (const text of [...texts, output, served.errors()])
      expect(text.includes(token.secret.slice(8))).toBe(false);
  });

  it("refuses --admin-host without --admin-port", async () => {
    expect(await runHere(["serve", "--admin-host", "0.0.0.0"])).toEqual({
      code: 2,
      output: "",
      errors: "error: --admin-host requires --admin-port\n",
    });
  });
});
