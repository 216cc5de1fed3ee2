/**
 * The load generator: a process that keeps a number of requests in flight for a time, checks and counts every answer,
 * and reports its measurements.
 */
import { setTimeout as wait } from "node:timers/promises";
import { Agent } from "undici";
import type { LoadOrder, LoadReport } from "./load-order.ts";
import { createTalk, type Talk } from "./talks.ts";

let [orders, requests] = [0, 0];

process.on("message", (order: LoadOrder) => {
  run(order).then((report) => process.send?.(report));
});
process.on("disconnect", () => process.exit(0));

async function run(order: LoadOrder): Promise<LoadReport> {
  orders += 1;
  const agent = new Agent({ connections: order.concurrency, pipelining: 1 });
  const measured: Measured = {
    answers: 0,
    unavailable: 0,
    wrong: [],
    latencies: [],
    openings: [],
    firstBytes: [],
  };
  const started = performance.now();
  const deadline = started + order.seconds * 1_000;
  await Promise.all(
    Array.from({ length: order.concurrency }, async (_, worker) => {
      const talk = createTalk(order.workload, `${process.pid}-${orders}-${worker}`);
      const origin = order.origins[worker % order.origins.length] ?? "";
      await wait((order.spreadSeconds * 1_000 * worker) / order.concurrency);
      do await ask(agent, { ...order, origin, talk, measured });
      while (performance.now() < deadline && measured.wrong.length < 10);
    }),
  );
  const seconds = (performance.now() - started) / 1_000;
  await agent.close();
  return {
    answers: measured.answers,
    unavailable: measured.unavailable,
    wrong: measured.wrong,
    seconds,
    p50: percentile(measured.latencies, 0.5),
    p99: percentile(measured.latencies, 0.99),
    openingP50: percentile(measured.openings, 0.5),
    firstByteP50: percentile(measured.firstBytes, 0.5),
  };
}

interface Measured {
  answers: number;
  unavailable: number;
  readonly wrong: string[];
  readonly latencies: number[];
  readonly openings: number[];
  readonly firstBytes: number[];
}

interface Worker extends LoadOrder {
  readonly origin: string;
  readonly talk: Talk;
  readonly measured: Measured;
}

function ask(agent: Agent, worker: Worker): Promise<void> {
  const { origin, base, talk, measured } = worker;
  const turn = talk.next();
  const headers = headersOf(worker);
  const chunks: Buffer[] = [];
  let status = 0;
  const sent = performance.now();
  return new Promise((resolve) => {
    agent.dispatch(
      { origin, path: `${base}/${turn.endpoint}`, method: "POST", headers, body: turn.body },
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
          (turn.opens ? measured.openings : measured.latencies).push(performance.now() - sent);
          const body = Buffer.concat(chunks);
          const isTolerated = status === 503 && worker.toleratesUnavailable;
          const problem = status === 200 ? talk.hear(body) : "not 200";
          if (isTolerated) measured.unavailable += 1;
          else if (problem === null) measured.answers += 1;
          else measured.wrong.push(`${problem}: ${status} ${body.subarray(0, 300).toString()}`);
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

function headersOf({ headers, secrets }: LoadOrder): Readonly<Record<string, string>> {
  requests += 1;
  const secret = secrets[requests % secrets.length];
  return secret === undefined ? headers : { ...headers, authorization: `Bearer ${secret}` };
}

function percentile(values: number[], part: number): number {
  values.sort((a, b) => a - b);
  return values[Math.min(values.length - 1, Math.floor(values.length * part))] ?? Number.NaN;
}
