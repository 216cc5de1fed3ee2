/**
 * `npm run faults -- slow-sockets --sockets 500 --requests 1000`: what sockets that send their requests byte by byte cost the
 * requests of others (S40). Fails if the p99 of the others grows by more than 20 %, in each of three rounds.
 */
import { setTimeout as pause } from "node:timers/promises";
import { type RawClient, rawClient } from "@tollgate/testing";
import { readNumbers } from "./arguments.ts";
import { chatRoute } from "./endpoints.ts";
import { openProcesses } from "./processes.ts";
import { goodAnswer } from "./upstream-bytes.ts";

const maxGrowth = 1.2;
const maxRounds = 3;
/** Each socket sends a byte per pause: far more than a slow sender does. */
const pauseMs = 1_000;

const { sockets, requests } = readNumbers({ sockets: 500, requests: 1_000 });
const processes = await openProcesses(({ send, body }) => send(goodAnswer(body)));
const gateway = await processes.start();
await p99(requests);
let growth = Number.POSITIVE_INFINITY;
for (let round = 1; round <= maxRounds && growth > maxGrowth; round++) {
  const alone = await p99(requests);
  const slow = await Promise.all(Array.from({ length: sockets }, () => rawClient(gateway.url)));
  const leaving = new AbortController();
  const trickling = Promise.all(slow.map((client, at) => trickle(client, at, leaving.signal)));
  const among = await p99(requests);
  leaving.abort();
  await trickling;
  for (const client of slow) client.reset();
  growth = among / alone;
  process.stdout.write(
    `p99 of ${requests} requests: ${alone.toFixed(1)} ms alone, ${among.toFixed(1)} ms next to ${sockets} slow sockets\n`,
  );
}
const problems = await processes.problems();
await processes.close();
for (const problem of problems) process.stdout.write(`  ${problem}\n`);
process.exit(problems.length === 0 && growth <= maxGrowth ? 0 : 1);

/** Sends a request byte by byte; half of them stop before the body. */
async function trickle(client: RawClient, at: number, signal: AbortSignal): Promise<void> {
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: slow\r\ncontent-type: application/json\r\n`;
  client.send(at % 2 === 0 ? head : `${head}content-length: 1000000\r\n\r\n{`);
  // Spread over the pause, so that they do not all send at once.
  const first = (at / sockets) * pauseMs;
  const isOver = () => signal.aborted;
  for (let wait = first; !isOver(); wait = pauseMs) {
    await pause(wait, undefined, { signal }).catch(() => {});
    if (!isOver()) client.send(at % 2 === 0 ? "x" : " ");
  }
}

async function p99(count: number): Promise<number> {
  const times: number[] = [];
  for (let request = 0; request < count; request++) {
    const started = performance.now();
    const client = await processes.post(gateway, {}, [], chatRoute);
    const answer = await client.ended();
    times.push(performance.now() - started);
    if (!answer.startsWith("HTTP/1.1 200 ")) throw new Error(`A good request got ${answer}.`);
  }
  return times.sort((a, b) => a - b)[Math.ceil(count * 0.99) - 1] ?? 0;
}
