import { randomBytes } from "node:crypto";
import { type GatewayProcess, rawClient } from "@tollgate/testing";
import { expect, inject, it, onTestFinished, vi } from "vitest";
import { openProcesses, type Processes } from "../src/processes.ts";
import { chat } from "../src/product.ts";
import { readAnswer } from "../src/read-answer.ts";
import type { DatabaseLocation } from "../src/stores/database-location.ts";
import { goodAnswer } from "../src/upstream-bytes.ts";

vi.setConfig({ testTimeout: 60_000 });

const fits = 5;
const asked = 14;

it.each([
  ["SQLite", () => undefined],
  [
    "PostgreSQL",
    () => ({ url: inject("postgresUrl"), schema: `each_${randomBytes(6).toString("hex")}` }),
  ],
] satisfies readonly [string, () => DatabaseLocation | undefined][])(
  "F40 two processes on %s admit exactly as many requests as each key's own budget allows, from the first on",
  async (_name, place) => {
    const processes = await openProcesses(({ send, body }) => send(goodAnswer(body)), place());
    onTestFinished(() => processes.close());
    const two = await Promise.all([1, 2].map(() => processes.start({ requestsOfEachKey: fits })));
    const keys = await Promise.all([0, 1, 0, 1].map((at) => secretOf(two[at])));
    // The first requests of all keys arrive at once, half at each process.
    const statuses = await Promise.all(
      keys.map((secret) =>
        Promise.all(Array.from({ length: asked }, (_, at) => statusOf(two[at % 2], secret))),
      ),
    );
    const expected = Array.from({ length: asked }, (_, at) => (at < fits ? 200 : 429));
    for (const ofKey of statuses) expect(ofKey.toSorted()).toEqual(expected);
    expect(await countersOf(processes)).toEqual(keys.map(() => [fits, 0]));
    expect(await processes.problems()).toEqual([]);
  },
);

async function secretOf(process: GatewayProcess | undefined): Promise<string> {
  const key = await process?.command("createKey");
  return typeof key === "object" && key !== null ? String(Reflect.get(key, "secret")) : "";
}

async function statusOf(to: GatewayProcess | undefined, secret: string): Promise<number | null> {
  if (to === undefined) throw new Error("unknown process");
  const client = await rawClient(to.url);
  client.post(chat(), { secret, headers: ["connection: close"] });
  return readAnswer(await client.ended()).status;
}

async function countersOf(processes: Processes): Promise<unknown> {
  const { counters } = await processes.dump();
  return counters
    .filter(({ budgetId }) => budgetId === "each")
    .map(({ settled, held }) => [settled, held]);
}
