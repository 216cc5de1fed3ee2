import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";
import { encode } from "@auth/core/jwt";
import { type ScriptedUpstream, scriptedUpstream } from "@tollgate/testing";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type RunningServer, runServer } from "./run-server.ts";

const version = process.env["NEXT_VERSION"] ?? "16";
const app = process.env["NEXT_APP"] ?? "";
const secret = "for this test alone: 32 characters";
const salt = "authjs.session-token";
const edits = 10;
const maxEditMs = 20_000;
/** 1,000 tokens in at $0.25 and 500 out at $2 per million, by the catalog. */
const costNanoUsd = 1_250_000;

interface Counts {
  readonly loads: number;
  readonly gateways: number;
  readonly timers: number;
  readonly edit: number;
  readonly pid: number;
  readonly calls: readonly { readonly userId: string; readonly costNanoUsd: number | null }[];
}

const completion = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "gpt-5-mini",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1_000, completion_tokens: 500, total_tokens: 1_500 },
});

let upstream: ScriptedUpstream;
beforeAll(async () => {
  upstream = await scriptedUpstream(({ send }) =>
    send(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${completion.length}\r\n\r\n${completion}`,
    ),
  );
});
afterAll(() => upstream.close());

/** A temporary folder with a database in it. */
function scratch() {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-app-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const database = join(folder, "tollgate.db");
  return { folder, database };
}

async function start(
  folder: string,
  words: readonly string[],
  database: string,
  authSecret: string | undefined = secret,
): Promise<RunningServer> {
  const server = await runServer(folder, words, {
    NEXT_TELEMETRY_DISABLED: "1",
    TOLLGATE_DATABASE: database,
    UPSTREAM: `${upstream.url}/v1`,
    AUTH_SECRET: authSecret,
    AUTH_TRUST_HOST: "true",
  });
  onTestFinished(() => server.stop());
  return server;
}

/** Runs a copy of `.next/standalone` from another folder, with the packages of the app moved out of reach. */
async function startStandalone(authSecret?: string) {
  const { folder, database } = scratch();
  const copy = join(folder, "copy");
  cpSync(join(app, ".next/standalone"), copy, { recursive: true, verbatimSymlinks: true });
  cpSync(join(app, ".next/static"), join(copy, ".next/static"), { recursive: true });
  renameSync(join(app, "node_modules"), join(app, "out-of-reach"));
  onTestFinished(() => renameSync(join(app, "out-of-reach"), join(app, "node_modules")));
  return start(copy, ["server.js"], database, authSecret);
}

const cookieOf = async (sub: string, options: { secret?: string; maxAge?: number } = {}) =>
  `${salt}=${await encode({ token: { sub }, secret, salt, ...options })}`;

function call({ url }: RunningServer, cookie: string): Promise<Response> {
  const messages = [{ role: "user", content: "Hello" }];
  return fetch(`${url}/ai/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", cookie },
    body: JSON.stringify({ model: "openai/openai/gpt-5-mini", messages }),
  });
}

async function codeOf(answer: Promise<Response>): Promise<string> {
  const response = await answer;
  const { error } = JSON.parse(await response.text());
  return `${response.status} ${error?.code ?? "ok"}`;
}

const countsOf = async ({ url }: RunningServer): Promise<Counts> =>
  JSON.parse(await (await fetch(`${url}/counts`)).text());

describe(`an app on Next ${version}`, { timeout: 180_000 }, () => {
  it("signs in with Auth.js and prices calls from a copied standalone folder", async () => {
    const server = await startStandalone();
    expect(await codeOf(call(server, await cookieOf("ada")))).toBe("200 ok");
    expect((await countsOf(server)).calls).toEqual([{ userId: "ada", costNanoUsd }]);
    const guessed = "a guessed secret";
    for (const cookie of [
      "",
      await cookieOf("ada", { maxAge: -60 }),
      await cookieOf("ada", { secret: guessed }),
    ])
      expect(await codeOf(call(server, cookie))).toBe("401 missing_api_key");
    expect((await countsOf(server)).calls).toHaveLength(1);
  });

  it("answers 503 if Auth.js itself fails", async () => {
    const server = await startStandalone("");
    expect(await codeOf(call(server, await cookieOf("ada")))).toBe(
      "503 authentication_unavailable",
    );
  });

  it(`keeps one gateway across ${edits} edits under next dev`, async () => {
    const { database } = scratch();
    const server = await start(app, ["node_modules/next/dist/bin/next", "dev"], database);
    const cookie = await cookieOf("ada");
    expect(await codeOf(call(server, cookie))).toBe("200 ok");
    const before = await countsOf(server);
    for (let edit = 1; edit <= edits; edit++) {
      await makeEdit(server, edit);
      expect(await codeOf(call(server, cookie))).toBe("200 ok");
    }
    const after = await countsOf(server);
    console.log(`next ${version} dev:`, {
      ...after,
      timers: [before.timers, after.timers],
      calls: after.calls.length,
    });
    expect(after.loads).toBeGreaterThanOrEqual(before.loads + edits);
    expect(after).toMatchObject({ gateways: 1, pid: before.pid });
    await expect
      .poll(async () => (await countsOf(server)).timers)
      .toBeLessThanOrEqual(before.timers);
    expect(after.calls).toEqual(Array(edits + 1).fill({ userId: "ada", costNanoUsd }));
    expect(upstream.connections.open).toBeLessThanOrEqual(1);
    const store = new DatabaseSync(database, { readOnly: true });
    onTestFinished(() => store.close());
    expect(store.prepare("SELECT count(*) AS leases FROM processes").get()).toEqual({ leases: 1 });
  });
});

/** Edits the gateway file and its route file, then waits until the server has loaded both. */
async function makeEdit(server: RunningServer, edit: number): Promise<void> {
  const gateway = join(app, "app/gateway.js");
  const source = readFileSync(gateway, "utf8");
  writeFileSync(gateway, source.replace(/const edit = \d+/, `const edit = ${edit}`));
  const route = join(app, "app/ai/[...path]/route.js");
  writeFileSync(route, `${readFileSync(route, "utf8")}\nconst edit${edit} = ${edit};\n`);
  const deadline = performance.now() + maxEditMs;
  while ((await countsOf(server)).edit !== edit) {
    if (performance.now() > deadline) throw new Error(`Edit ${edit} was not loaded.`);
    await wait(50);
  }
}
