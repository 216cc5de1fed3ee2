import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import {
  chat,
  launch,
  pacedConfiguration,
  run,
  runJson,
  startServe,
  temporaryFolder,
} from "./command-line.ts";

const secretPattern = /\btg_[0-9A-Za-z]{49}\b/;

describe("tollgate serve without a configuration", () => {
  it("prints a key once, answers requests with it and keeps records in ./tollgate.db", async () => {
    const folder = temporaryFolder();
    const first = await startServe(folder);
    const secret = secretPattern.exec(first.announced)?.[0] ?? "";
    expect(first.announced).toMatch(/^Tollgate listens on http:\/\/127\.0\.0\.1:\d+$/m);
    expect(secret).not.toBe("");

    for (const path of ["/healthz", "/readyz"])
      expect((await fetch(`${first.url}${path}`)).status).toBe(200);
    expect((await fetch(first.url, { method: "HEAD" })).status).toBe(200);
    const plain = await chat(first.url, { secret, text: "hello there" });
    expect(await plain.json()).toMatchObject({
      choices: [{ message: { content: "You said: hello there" } }],
    });
    const streamed = await chat(first.url, { secret, text: "hello there", stream: true });
    expect(await streamed.text()).toMatch(/data: \[DONE\]\n\n$/);
    first.child.kill("SIGTERM");
    expect(await first.exited).toBe(0);

    expect(await runJson(folder, "activity")).toMatchObject({
      data: [
        { model: "sim/tollgate/echo", keyLabel: "first key", promptTokens: 5, completionTokens: 4 },
        { model: "sim/tollgate/echo", costNanoUsd: 2_100, source: "api" },
      ],
      nextCursor: null,
    });

    const second = await startServe(folder);
    expect(second.announced).toContain("Put an API key in TOLLGATE_KEY");
    expect(second.announced).not.toMatch(secretPattern);
    expect((await chat(second.url, { secret, text: "again" })).status).toBe(200);
    second.child.kill("SIGINT");
    expect(await second.exited).toBe(0);
  });

  it("creates no key with --no-first-key, and fails in one line when the port is taken", async () => {
    const folder = temporaryFolder();
    const { url, child, announced } = await startServe(folder, ["--no-first-key"]);
    expect(announced).not.toMatch(secretPattern);
    expect(await runJson(folder, "keys", "list")).toMatchObject({ data: [] });
    const { port } = new URL(url);
    const { code, errors } = await run(folder, ["serve", "--port", port]);
    expect(code).toBe(1);
    expect(errors).toBe(
      `error: port ${port} of 127.0.0.1 is in use: choose another port with --port\n`,
    );
    child.kill("SIGTERM");
  });

  it.each([
    ["--host 203.0.113.7", "port 0 of 203.0.113.7", "--host or --port"],
    ["--host no.invalid", "port 0 of no.invalid", "--host or --port"],
    [
      "--host no.invalid --metrics-port 9464",
      "port 9464 of no.invalid",
      "--host or --metrics-port",
    ],
    [
      "--admin-host no.invalid --admin-port 9464",
      "port 9464 of no.invalid",
      "--admin-host or --admin-port",
    ],
  ])(
    "says where it can't listen, and which options change that: %s",
    async (words, place, options) => {
      const { code, errors } = await run(temporaryFolder(), [
        "serve",
        "--port=0",
        ...words.split(" "),
      ]);
      expect(errors.replace(/\(E[A-Z_]+\)/, "(CODE)")).toBe(
        `error: can't listen on ${place} (CODE): choose another with ${options}\n`,
      );
      expect(code).toBe(1);
    },
  );

  it("rejects a drain delay that leaves no time to end answers", async () => {
    const words = ["serve", "--port", "0", "--close-within", "5", "--drain-delay", "5"];
    const { code, errors } = await run(temporaryFolder(), words);
    expect([code, errors]).toEqual([
      2,
      "error: --drain-delay (5 s) must be less than --close-within (5 s), which includes it\n",
    ]);
  });
});

it("keeps serving when nobody reads its log any more", async () => {
  const served = await startServe(temporaryFolder());
  const secret = secretPattern.exec(served.announced)?.[0] ?? "";
  served.child.stderr?.destroy();
  expect((await chat(served.url, { secret: "tg_unknown", text: "logged" })).status).toBe(401);
  expect((await chat(served.url, { secret, text: "served" })).status).toBe(200);
  served.child.kill("SIGTERM");
  expect(await served.exited).toBe(0);
});

it("serves although nobody reads what it prints", async () => {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = Object(probe.address());
  await new Promise((resolve) => probe.close(resolve));
  const child = launch(temporaryFolder(), ["serve", "--port", String(port)]);
  child.stdout?.destroy();
  const ended = once(child, "exit");
  const health = async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).status;
  await vi.waitFor(async () => expect(await health()).toBe(200), 15_000);
  // Listening comes before the announcement.
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await health()).toBe(200);
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

describe("npm start", () => {
  it("hands SIGTERM to the server, which lets a stream end before it shuts down", async () => {
    const root = fileURLToPath(new URL("../../..", import.meta.url));
    const DATABASE = join(temporaryFolder(), "paced.db");
    const environment = { ...process.env, DATABASE, PACE: "25" };
    const words = ["start", "--silent", "--", "--port", "0", "--config", pacedConfiguration];
    const npm = spawn("npm", words, {
      cwd: root,
      env: environment,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let [url, secret] = ["", ""];
    for await (const line of createInterface({ input: npm.stdout })) {
      url = /http:\/\/\S+:\d+/.exec(line)?.[0] ?? url;
      secret = secretPattern.exec(line)?.[0] ?? secret;
      if (secret !== "") break;
    }
    npm.stdout.resume();
    const text = "one two three four five six seven eight nine ten";
    const answer = await chat(url, { secret, text, stream: true });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let all = (await reader?.read())?.value ?? "";
    npm.kill("SIGTERM");
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read())
      all += next.value;
    expect(all).toMatch(/data: \[DONE\]\n\n$/);
    expect(all).toContain(" ten");
    // Without the signal, the server would listen forever.
    await vi.waitFor(async () => expect(await accepts(url)).toBe(false), 10_000);
  });
});

describe("tollgate serve, stopped in mid-stream", () => {
  const words = ["--config", pacedConfiguration];

  async function streaming(pace: string) {
    const folder = temporaryFolder();
    const served = await startServe(folder, words, { PACE: pace });
    const secret = secretPattern.exec(served.announced)?.[0] ?? "";
    const text = "one two three four five six seven eight nine ten";
    const answer = await chat(served.url, { secret, text, stream: true });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) throw new Error("the answer has no body");
    return { folder, served, reader, first: (await reader.read()).value ?? "" };
  }

  it("lets the stream end, settles it, and exits with 0", async () => {
    const { folder, served, reader, first } = await streaming("25");
    served.child.kill("SIGTERM");
    let all = first;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      all += value;
    }
    expect(all).toMatch(/data: \[DONE\]\n\n$/);
    expect(all).toContain(" ten");
    expect(await served.exited).toBe(0);
    const steps = await runJson(folder, "steps", "list", ...words);
    expect(steps).toMatchObject({ data: [{ outcome: "completed" }] });
  });

  it.each(["chat", "responses"] as const)(
    "ends a %s stream that outlasts the limit with an error, records it and exits with 0 (H6)",
    async (family) => {
      const { folder, served, rest } = await endless(family, "2");
      const asked = performance.now();
      served.child.kill("SIGTERM");
      expect(endOf(await rest())).toEqual(
        family === "chat" ? ["error", "[DONE]"] : ["error", "response.failed"],
      );
      expect(await served.exited).toBe(0);
      expect(performance.now() - asked).toBeLessThan(4_000);
      expect(await runJson(folder, "steps", "list", ...words)).toMatchObject({
        data: [{ outcome: "failed", reason: "gateway_closed" }],
      });
    },
  );

  it("ends sooner on the second signal, and at once on the third", async () => {
    const sooner = await endless("chat", "600");
    sooner.served.child.kill("SIGTERM");
    while (await accepts(sooner.served.url));
    sooner.served.child.kill("SIGTERM");
    expect(endOf(await sooner.rest())).toEqual(["error", "[DONE]"]);
    expect(await sooner.served.exited).toBe(0);

    const atOnce = await endless("chat", "600");
    atOnce.served.child.kill("SIGTERM");
    while (await accepts(atOnce.served.url));
    atOnce.served.child.kill("SIGINT");
    atOnce.served.child.kill("SIGTERM");
    // Two signals sent at once can arrive in either order.
    expect([130, 143]).toContain(await atOnce.served.exited);
  });

  /** A stream that would run for minutes, after its first event. */
  async function endless(family: "chat" | "responses", closeWithin: string) {
    const folder = temporaryFolder();
    const options = [...words, "--close-within", closeWithin];
    const served = await startServe(folder, options, { PACE: "100" });
    const secret = secretPattern.exec(served.announced)?.[0] ?? "";
    const text = "word ".repeat(5_000);
    const answer = await (family === "chat"
      ? chat(served.url, { secret, text, stream: true })
      : respond(served.url, { secret, text }));
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) throw new Error("the answer has no body");
    await reader.read();
    const rest = async (): Promise<string> => {
      for (let all = ""; ; ) {
        const { done, value } = await reader.read();
        if (done) return all;
        all += value;
      }
    };
    return { folder, served, rest };
  }
});

/** The names of the last two events of a stream: their types, or for chat their content. */
function endOf(stream: string): readonly string[] {
  const events = stream.split("\n\n").filter((event) => event.includes("data: "));
  return events.slice(-2).map((event) => {
    const data = event.slice(event.indexOf("data: ") + 6);
    if (data === "[DONE]") return data;
    const { type, error } = JSON.parse(data);
    return type ?? (error === undefined ? "chunk" : "error");
  });
}

function respond(
  url: string,
  { secret, text }: { readonly secret: string; readonly text: string },
): Promise<Response> {
  return fetch(`${url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "sim/tollgate/echo", stream: true, input: text }),
  });
}

/** Whether a new connection is still accepted. */
function accepts(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

it("logs each request that fails as one line of JSON, without content or secrets (S34)", async () => {
  const apart = temporaryFolder();
  const label = "a\u2028label";
  const words = ["--organization", "acme\u202e", "--user", "ada", "--label", label];
  const { secret } = z
    .looseObject({ secret: z.string() })
    .parse(await runJson(apart, "keys", "create", ...words));
  const { url, child, exited, errors } = await startServe(apart);
  const content = 'content\n{"code":"forged"}\u001b[2J';
  const ask = (fields: object, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${secret}`,
        "content-type": "application/json",
        ...headers,
      },
      body: JSON.stringify({
        model: "sim/tollgate/echo",
        messages: [{ role: "user", content }],
        ...fields,
      }),
    });
  const failing = [
    ask({ model: content }),
    ask({ [content]: 1 }),
    ask({}, { "x-service-data-sensitivity": '{"forged":1}' }),
    ask({}, { authorization: "Bearer tg_forged\u00a0" }),
  ];
  for (const answer of await Promise.all(failing)) expect(answer.ok).toBe(false);
  expect((await ask({})).ok).toBe(true);
  child.kill("SIGTERM");
  await exited;
  const lines = errors().trimEnd().split("\n");
  expect(lines).toHaveLength(failing.length);
  for (const line of lines) {
    expect(line).toMatch(/^[\x20-\x7e]+$/);
    expect(Object.keys(JSON.parse(line))).toEqual([
      "level",
      "time",
      "event",
      "requestId",
      "code",
      "status",
      "organizationId",
      "keyId",
      "stepId",
    ]);
    expect(line).not.toMatch(/forged|content|tg_/);
  }
  expect(lines.filter((line) => line.includes("acme\\u202e"))).toHaveLength(3);
}, 60_000);
