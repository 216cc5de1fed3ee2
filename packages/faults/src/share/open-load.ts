import { Agent, request } from "node:http";
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { chat } from "../product.ts";

/** Requests of one key, sent at a steady rate whether or not earlier ones were answered. */
export interface OpenLoad {
  readonly url: string;
  readonly secret: string;
  readonly perSecond: number;
  readonly seconds: number;
  /** Open connections at most. Further requests wait for one. */
  readonly connections: number;
}

/** Milliseconds to the end of each answer with status 200, and the number of answers with each status. */
export interface LoadResult {
  readonly latencies: readonly number[];
  readonly statuses: Readonly<Record<string, number>>;
}

const tickMs = 5;

export async function runLoad({
  url,
  secret,
  perSecond,
  seconds,
  connections,
}: OpenLoad): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const latencies: number[] = [];
  const statuses: Record<string, number> = {};
  const running = new Set<Promise<void>>();
  const body = JSON.stringify(chat());
  const send = (): void => {
    const begun = performance.now();
    const answered = post({ url, secret, body, agent }).then((status) => {
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === "200") latencies.push(performance.now() - begun);
      running.delete(answered);
    });
    running.add(answered);
  };
  const begun = performance.now();
  for (let sent = 0; ; ) {
    const elapsed = performance.now() - begun;
    for (; sent < (Math.min(elapsed, seconds * 1_000) / 1_000) * perSecond; sent++) send();
    if (elapsed >= seconds * 1_000) break;
    await new Promise((resolve) => setTimeout(resolve, tickMs));
  }
  await Promise.all(running);
  agent.destroy();
  return { latencies, statuses };
}

/** Resolves with the status of the answer, or with the error's code. */
function post({
  url,
  secret,
  body,
  agent,
}: Pick<OpenLoad, "url" | "secret"> & {
  readonly body: string;
  readonly agent: Agent;
}): Promise<string> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${secret}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    const sending = request(`${url}/v1/chat/completions`, { method: "POST", agent, headers });
    sending.on("response", (answer) => {
      answer.resume().on("end", () => resolve(String(answer.statusCode)));
    });
    sending.on("error", (error) => resolve("code" in error ? String(error.code) : "error"));
    sending.end(body);
  });
}

// As a worker it loads from a thread of its own, so that it doesn't delay what the main thread measures.
if (!isMainThread) parentPort?.postMessage(await runLoad(workerData));
