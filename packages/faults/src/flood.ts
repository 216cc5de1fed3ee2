/** `npm run faults -- flood --megabytes 256`: what one endless event and a million tiny ones cost the process. */
import type { GatewayProcess, UpstreamExchange } from "@tollgate/testing";
import { readNumbers } from "./arguments.ts";
import { chatRoute } from "./endpoints.ts";
import { openProcesses } from "./processes.ts";
import { done, finish, goodAnswer, openHead, text } from "./upstream-bytes.ts";

const maxHeldGrowth = 64_000_000;
const maxDelayMs = 100;
const piece = Buffer.alloc(65_536, "x");

const { megabytes, events } = readNumbers({ megabytes: 256, events: 1_000_000 });
const floods: Readonly<Record<string, (exchange: UpstreamExchange) => Promise<void>>> = {
  "one endless event": async ({ send, closed, end }) => {
    let isOpen = true;
    void closed.then(() => {
      isOpen = false;
    });
    await send(`${openHead}data: `);
    for (let sent = 0; isOpen && sent < megabytes * 1_000_000; sent += piece.length)
      await send(piece);
    end();
  },
  "tiny comments": async ({ send, end }) => {
    await send(openHead);
    for (let sent = 0; sent < events; sent += 1_000) await send(": .\n\n".repeat(1_000));
    await send(text("Hi") + finish + done);
    end();
  },
  "tiny events": async ({ send, end }) => {
    await send(openHead);
    for (let sent = 0; sent < events; sent += 1_000) await send(text("x").repeat(1_000));
    await send(finish + done);
    end();
  },
};

let flood: (exchange: UpstreamExchange) => Promise<void> = ({ send, body }) =>
  send(goodAnswer(body));
const processes = await openProcesses((exchange) => flood(exchange));
const gateway = await processes.start();
await ask(gateway);
const failures: string[] = [];
for (const [name, script] of Object.entries(floods)) {
  flood = script;
  await gateway.command("watch");
  const answer = await ask(gateway);
  const { heldBytes, delayMs } = readCost(await gateway.command("watched"));
  process.stdout.write(
    `${name}: ${answer.length} bytes answered, memory +${(heldBytes / 1e6).toFixed(1)} MB at most, event loop delay p99 ${delayMs.toFixed(1)} ms\n`,
  );
  if (heldBytes > maxHeldGrowth) failures.push(`${name}: memory grew by more than 64 MB`);
  if (delayMs > maxDelayMs) failures.push(`${name}: the event loop was late by more than 100 ms`);
}
failures.push(...(await processes.problems()));
await processes.close();
for (const failure of failures) process.stdout.write(`  ${failure}\n`);
process.exit(failures.length === 0 ? 0 : 1);

async function ask(to: GatewayProcess): Promise<string> {
  const client = await processes.post(to, { stream: true }, [], chatRoute);
  return client.ended();
}

function readCost(value: unknown): { readonly heldBytes: number; readonly delayMs: number } {
  if (typeof value !== "object" || value === null) throw new Error("The process reported nothing.");
  return {
    heldBytes: Number(Reflect.get(value, "heldBytes")),
    delayMs: Number(Reflect.get(value, "delayMs")),
  };
}
