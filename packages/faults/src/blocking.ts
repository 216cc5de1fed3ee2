/**
 * `npm run faults -- blocking --runs 3 --rows state`: how long the largest request and the largest answer of every shape
 * keep the event loop from other work, in memory and on a SQLite file. Fails above 100 ms. `--rows` names the shapes to
 * measure by a part of their name; all by default.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createGateway, type Gateway } from "@tollgate/core";
import type { Store } from "@tollgate/core/store";
import { aiSdk } from "@tollgate/provider-ai-sdk";
import { openaiCompatible } from "@tollgate/provider-openai";
import { memoryStore } from "@tollgate/store-memory";
import { sqliteStore } from "@tollgate/store-sqlite";
import { readNumbers, readTexts } from "./arguments.ts";
import { answerShapes } from "./blocking/answer-shapes.ts";
import { requestShapes } from "./blocking/request-shapes.ts";
import { garbageCollector } from "./collect-garbage.ts";

const maxMs = 100;
const collect = garbageCollector();
const { runs } = readNumbers({ runs: 3 }, ["rows"]);
const { rows = "" } = readTexts(["runs", "rows"]);

interface BlockingCase {
  readonly name: string;
  readonly path: string;
  /** 200, unless it exceeds a limit. */
  readonly status: number;
  readonly before?: () => string;
  readonly body: (earlier: string) => string;
}

const endpoints = [
  {
    endpoint: "",
    path: "/v1/chat/completions",
    asked: { messages: [{ role: "user", content: "Hi" }] },
  },
  { endpoint: " (responses)", path: "/v1/responses", asked: { input: "Hi" } },
  {
    endpoint: " (messages)",
    path: "/v1/messages",
    asked: { messages: [{ role: "user", content: "Hi" }], max_tokens: 1_000 },
  },
] as const;

/** The answer shapes through both kinds of provider, with the same upstream. */
const answers = ["up", "ai-sdk"].flatMap((provider) =>
  Object.entries(answerShapes).flatMap(
    ([name, { stream, status, isLeftOutByAiSdk = false }], index) =>
      endpoints.map(({ endpoint, path, asked }) => ({
        name: `answer${provider === "up" ? "" : ` by ${provider}`}, ${name}${endpoint}`,
        status: isLeftOutByAiSdk && provider !== "up" ? 200 : status,
        path,
        body: () =>
          JSON.stringify({ model: `${provider}/vendor/shape-${index}`, stream, ...asked }),
      })),
  ),
);
const all: readonly BlockingCase[] = [
  ...requestShapes.map((shape) => ({ ...shape, name: `request, ${shape.name}`, status: 200 })),
  ...answers,
];
const testCases = all.filter(({ name }) => name.includes(rows));

const upstream = new Worker(new URL("./blocking/upstream-thread.ts", import.meta.url));
const [url] = await once(upstream, "message");
const folder = mkdtempSync(join(tmpdir(), "tollgate-blocking-"));
const stores: readonly (readonly [string, Store])[] = [
  ["memory", memoryStore()],
  ["SQLite", sqliteStore({ filename: join(folder, "tollgate.db") })],
];
let passed = true;
for (const [name, store] of stores) passed = (await measureStore(name, store)) && passed;
await upstream.terminate();
rmSync(folder, { recursive: true, force: true });
process.exit(passed ? 0 : 1);

/** Whether every shape has the expected status and none takes too long. */
async function measureStore(name: string, store: Store): Promise<boolean> {
  const baseURL = `${url}/v1`;
  const gateway = createGateway({
    store,
    providers: {
      up: openaiCompatible({ baseURL, apiKey: null }),
      "ai-sdk": aiSdk(({ fetch }) => createOpenAICompatible({ name: "up", baseURL, fetch })),
    },
    retries: { max: 0 },
    toolOutputs: "parts",
  });
  const { secret } = await gateway.keys.create({
    organizationId: "acme",
    userId: "ada",
    label: "blocking",
  });
  let passed = true;
  for (const testCase of testCases) {
    const { ms, status } = await best(gateway, testCase, secret);
    const isExpected = status === testCase.status;
    passed &&= isExpected && ms <= maxMs;
    const mark = isExpected ? (ms > maxMs ? "  TOO LONG" : "") : `  NOT ${testCase.status}`;
    process.stdout.write(
      `${name.padEnd(7)} ${ms.toFixed(1).padStart(7)} ms  ${status}  ${testCase.name}${mark}\n`,
    );
  }
  await gateway.close();
  return passed;
}

interface Measured {
  readonly ms: number;
  readonly status: number;
}

/** Returns the best of several runs: other load makes a run longer, never shorter. */
async function best(gateway: Gateway, testCase: BlockingCase, secret: string): Promise<Measured> {
  let fastest: Measured | null = null;
  for (let run = 0; run < runs && (fastest === null || fastest.ms > maxMs / 2); run++) {
    const measured = await measureOnce(gateway, testCase, secret);
    if (fastest === null || measured.ms < fastest.ms) fastest = measured;
  }
  return fastest ?? { ms: 0, status: 0 };
}

async function measureOnce(
  gateway: Gateway,
  { path, before, body }: BlockingCase,
  secret: string,
): Promise<Measured> {
  const post = (text: string): Request =>
    new Request(`http://gateway.test${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: Buffer.from(text),
    });
  const earlier = before ? await (await gateway.fetch(post(before()))).text() : "";
  const request = post(body(/"id":"resp_(\w+)"/.exec(earlier)?.[1] ?? ""));
  collect();
  const watch = watchTurns();
  await nextTurn();
  const answer = await gateway.fetch(request);
  for await (const _ of answer.body ?? []);
  await nextTurn();
  return { ms: watch.stop(), status: answer.status };
}

/**
 * Measures the longest turn of the event loop until it is stopped, in CPU time of its own thread, so that other load on
 * the machine does not count.
 */
function watchTurns(): { stop(): number } {
  let longest = 0;
  let last = computedMs();
  let isStopped = false;
  const turn = (): void => {
    const now = computedMs();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isStopped) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    stop() {
      isStopped = true;
      return longest;
    },
  };
}

function computedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
