/**
 * `npm run faults -- crowd --streams 1000 --seconds 20 --stalled 100 --megabytes 60`: many streams at ten events a second,
 * then clients that read nothing of a long answer. The memory of the process must stay small.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { GatewayProcess, RawClient, UpstreamExchange } from "@tollgate/testing";
import { readNumbers } from "./arguments.ts";
import { chatRoute } from "./endpoints.ts";
import { openProcesses } from "./processes.ts";
import { data, done, finish, openHead, text } from "./upstream-bytes.ts";

const eventsPerSecond = 10;
const maxBytes = 400_000_000;
/** Each holds the content that was sent, of which the system's buffers take most, and the buffers of two sockets. */
const maxGrowthPerStalled = 1_000_000;
const openAtOnce = 20;

const { streams, seconds, stalled, megabytes } = readNumbers({
  streams: 1_000,
  seconds: 20,
  stalled: 100,
  megabytes: 60,
});
/** Events of a few characters, as models write them. Their content stays below `answerBytes`, so only the client stalls. */
const word = data({
  id: `chatcmpl-${"a".repeat(29)}`,
  object: "chat.completion.chunk",
  created: 1_760_000_000,
  model: "vendor-model-2026-01-01",
  service_tier: "default",
  system_fingerprint: "fp_0123456789",
  choices: [{ index: 0, delta: { content: "word " }, logprobs: null, finish_reason: null }],
});
const piece = word.repeat(Math.floor(60_000 / word.length));

const paced = async ({ send, end }: UpstreamExchange): Promise<void> => {
  await send(openHead);
  for (let event = 0; event < seconds * eventsPerSecond; event++) {
    await send(text("word "));
    await pause(1_000 / eventsPerSecond);
  }
  await send(finish + done);
  end();
};
const long = async ({ send, closed, end }: UpstreamExchange): Promise<void> => {
  let isOpen = true;
  void closed.then(() => {
    isOpen = false;
  });
  await send(openHead);
  for (let sent = 0; isOpen && sent < megabytes * 1_000_000; sent += piece.length)
    await send(piece);
  end();
};

let answer = paced;
const processes = await openProcesses((exchange) => answer(exchange));
const gateway = await processes.start();
const failures: string[] = [];

const clients = await open(streams);
let most = 0;
const ended = Promise.all(clients.map((client) => client.ended()));
let areOpen = true;
void ended.then(() => {
  areOpen = false;
});
while (areOpen) {
  most = Math.max(most, await residentBytes(gateway));
  await pause(500);
}
const complete = (await ended).filter((received) => received.includes("[DONE]")).length;
report(`${streams} streams: ${complete} complete, at most ${megabytesOf(most)} MB resident`);
if (complete < streams) failures.push(`${streams - complete} streams were not completed`);
if (most > maxBytes) failures.push(`the process took more than ${megabytesOf(maxBytes)} MB`);

answer = long;
const before = await residentBytes(gateway);
let isOpening = true;
const watched = watch();
const stalling = await open(stalled, (client) => client.pause());
await pause(5_000);
isOpening = false;
const after = await watched;
const waiting = await processes.openSteps();
// On a busy machine, `writeStall` may disconnect the first ones.
if (waiting < stalled * 0.9)
  failures.push(`only ${waiting} of ${stalled} answers wait for their clients`);
report(
  `${stalled} clients that stopped reading ${megabytes} MB each: ${megabytesOf(after - before)} MB more`,
);
const maxGrowth = stalled * maxGrowthPerStalled;
if (after - before > maxGrowth) failures.push(`they took more than ${megabytesOf(maxGrowth)} MB`);
for (const client of stalling) client.reset();
while ((await processes.openSteps()) > 0) await pause(100);
failures.push(...(await processes.problems()));
await processes.close();
for (const failure of failures) report(`  ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);

/** The most memory that the process takes while clients open. */
async function watch(): Promise<number> {
  let most = 0;
  while (isOpening) {
    most = Math.max(most, await residentBytes(gateway));
    await pause(250);
  }
  return most;
}

/** Opens streams, a few at once, and returns them when their first event has come. */
async function open(
  count: number,
  onFirst: (client: RawClient) => void = () => {},
): Promise<readonly RawClient[]> {
  const opened: RawClient[] = [];
  while (opened.length < count) {
    const next = Array.from({ length: Math.min(openAtOnce, count - opened.length) }, async () => {
      const client = await processes.post(gateway, { stream: true }, [], chatRoute);
      await client.until("data: ");
      onFirst(client);
      return client;
    });
    opened.push(...(await Promise.all(next)));
  }
  return opened;
}

async function residentBytes(of: GatewayProcess): Promise<number> {
  return Number(await of.command("memory"));
}

function megabytesOf(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}

function report(line: string): void {
  process.stdout.write(`${line}\n`);
}
