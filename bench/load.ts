/**
 * The load generator: a process that keeps a number of requests in flight for a time, checks every answer, counts them,
 * and reports what it measured.
 */
import { setTimeout as wait } from "node:timers/promises";
import { Agent } from "undici";
import type { LoadOrder, LoadReport } from "./load-order.ts";
import { marker, textEvents } from "./scenarios.ts";

const needle = Buffer.from(marker);
let requests = 0;

process.on("message", (order: LoadOrder) => {
  run(order).then((report) => process.send?.(report));
});
process.on("disconnect", () => process.exit(0));

async function run(order: LoadOrder): Promise<LoadReport> {
  const agent = new Agent({ connections: order.concurrency, pipelining: 1 });
  const measured: Measured = { answers: 0, wrong: [], latencies: [], firstBytes: [] };
  const started = performance.now();
  const deadline = started + order.seconds * 1_000;
  await Promise.all(
    Array.from({ length: order.concurrency }, async (_, worker) => {
      await wait((order.spreadSeconds * 1_000 * worker) / order.concurrency);
      do await ask(agent, order, measured);
      while (performance.now() < deadline && measured.wrong.length < 10);
    }),
  );
  const seconds = (performance.now() - started) / 1_000;
  await agent.close();
  return {
    answers: measured.answers,
    wrong: measured.wrong,
    seconds,
    p50: percentile(measured.latencies, 0.5),
    p99: percentile(measured.latencies, 0.99),
    firstByteP50: percentile(measured.firstBytes, 0.5),
  };
}

interface Measured {
  answers: number;
  readonly wrong: string[];
  readonly latencies: number[];
  readonly firstBytes: number[];
}

function ask(agent: Agent, order: LoadOrder, measured: Measured): Promise<void> {
  const sent = performance.now();
  const chunks: Buffer[] = [];
  let status = 0;
  return new Promise((resolve) => {
    agent.dispatch(
      {
        origin: order.origin,
        path: order.path,
        method: "POST",
        headers: order.headers,
        body: bodyOf(order),
      },
      {
        onRequestStart: () => {},
        onResponseStart: (_, code) => {
          status = code;
        },
        onResponseData: (_, chunk) => {
          if (chunks.length === 0) measured.firstBytes.push(performance.now() - sent);
          chunks.push(chunk);
        },
        onResponseEnd: () => {
          measured.latencies.push(performance.now() - sent);
          const problem = problemOf(order, status, Buffer.concat(chunks));
          if (problem === null) measured.answers += 1;
          else measured.wrong.push(problem);
          resolve();
        },
        onResponseError: (_, error) => {
          measured.wrong.push(String(error));
          resolve();
        },
      },
    );
  });
}

/** About 1 KB; the number makes every conversation another one. */
function bodyOf(order: LoadOrder): string {
  requests += 1;
  const streamed =
    order.model === "plain" ? "" : ',"stream":true,"stream_options":{"include_usage":true}';
  return `{"model":"bench/openai/${order.model}","messages":[{"role":"system","content":"${order.prompt}"},{"role":"user","content":"Question ${process.pid}-${requests}?"}]${streamed}}`;
}

/** What is wrong with an answer; null when it is whole. */
function problemOf(order: LoadOrder, status: number, body: Buffer): string | null {
  const describe = (what: string) => `${what}: ${status} ${body.toString().slice(0, 300)}`;
  if (status !== 200) return describe("not 200");
  if (order.model === "plain") return body.includes(needle) ? null : describe("not the answer");
  if (!body.includes("data: [DONE]\n\n")) return describe("stream without its end");
  const texts = occurrences(body);
  return texts === textEvents ? null : describe(`${texts} texts instead of ${textEvents}`);
}

function occurrences(body: Buffer): number {
  let found = 0;
  for (let at = body.indexOf(needle); at >= 0; at = body.indexOf(needle, at + 1)) found += 1;
  return found;
}

function percentile(values: number[], part: number): number {
  values.sort((a, b) => a - b);
  return values[Math.min(values.length - 1, Math.floor(values.length * part))] ?? Number.NaN;
}
