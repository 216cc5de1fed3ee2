import { randomBytes } from "node:crypto";
import type { GatewayProcess } from "@tollgate/testing";
import { expect, inject, it, onTestFinished, vi } from "vitest";
import { overlapMs } from "../src/process-commands.ts";
import { openProcesses, type Processes } from "../src/processes.ts";
import type { DatabaseLocation } from "../src/stores/database-location.ts";
import { goodAnswer } from "../src/upstream-bytes.ts";

vi.setConfig({ testTimeout: 60_000 });

const places: readonly (readonly [name: string, place: () => DatabaseLocation | undefined])[] = [
  ["one SQLite file", () => undefined],
  [
    "one schema of PostgreSQL",
    () => ({ url: inject("postgresUrl"), schema: `keys_${randomBytes(6).toString("hex")}` }),
  ],
];

type Pair = readonly [GatewayProcess, GatewayProcess];

interface Key {
  readonly id: string;
  readonly secret: string;
}

async function twoProcesses(
  place: DatabaseLocation | undefined,
): Promise<readonly [Processes, ...Pair]> {
  const processes = await openProcesses(({ send, body }) => send(goodAnswer(body)), place);
  onTestFinished(() => processes.close());
  return [processes, ...(await Promise.all([processes.start(), processes.start()]))];
}

async function createKey(at: GatewayProcess, user: string): Promise<Key> {
  const key: unknown = await at.command("createKey", user);
  if (typeof key !== "object" || key === null) throw new Error("the answer has no key");
  return { id: String(Reflect.get(key, "id")), secret: String(Reflect.get(key, "secret")) };
}

interface Credential {
  readonly [header: string]: string;
}

const bearer = (secret: string): Credential => ({ authorization: `Bearer ${secret}` });

async function post(to: GatewayProcess, credential: Credential): Promise<number> {
  const body = JSON.stringify({
    model: "up/vendor/model",
    messages: [{ role: "user", content: "Hello" }],
  });
  const headers = { ...credential, "content-type": "application/json" };
  const request = { method: "POST", headers, body };
  const answer = await fetch(`${to.url}/v1/chat/completions`, request);
  await answer.arrayBuffer();
  return answer.status;
}

async function readModels(from: GatewayProcess, credential: Credential): Promise<number> {
  const answer = await fetch(`${from.url}/v1/models`, { headers: credential });
  await answer.arrayBuffer();
  return answer.status;
}

/** The answers of both processes to each kind of request, all at once. */
async function answers(pair: Pair, credential: Credential): Promise<ReadonlySet<number>> {
  const ways = [post, readModels].flatMap((way) => pair.map((to) => way(to, credential)));
  return new Set(await Promise.all(ways));
}

const passes = new Set([200]);
const isRefused = new Set([401]);

it.each(places)(
  "S3 a key revoked in one process is refused by the other from its next request on: %s",
  async (_name, place) => {
    const [processes, ...pair] = await twoProcesses(place());
    const [a, b] = pair;
    const keys = [
      await createKey(a, "jane"),
      await createKey(b, "john"),
      await createKey(a, "john"),
    ];
    for (const { secret } of keys) expect(await answers(pair, bearer(secret))).toEqual(passes);
    const [jane, ...johns] = keys;
    await a.command("revokeKey", jane?.id);
    expect(await post(b, bearer(jane?.secret ?? ""))).toBe(401);
    expect(await readModels(b, bearer(jane?.secret ?? ""))).toBe(401);
    for (const { secret } of johns) expect(await answers(pair, bearer(secret))).toEqual(passes);
    await b.command("revokeUser", "john");
    for (const { secret } of johns) expect(await post(a, bearer(secret))).toBe(401);
    for (const { secret } of keys) expect(await answers(pair, bearer(secret))).toEqual(isRefused);
    expect(await processes.problems()).toEqual([]);
  },
);

it.each(places)(
  "a caller from the host of both processes is one key, and both reject it: %s",
  async (_name, place) => {
    const [processes, ...pair] = await twoProcesses(place());
    const ada = { "x-user": "ada" };
    const many = await Promise.all(Array.from({ length: 4 }, () => answers(pair, ada)));
    for (const answered of many) expect(answered).toEqual(passes);
    for (const one of pair) expect(await one.command("keysOf", "ada")).toHaveLength(1);
    await pair[0].command("revokeUser", "ada");
    expect(await post(pair[1], ada)).toBe(401);
    expect(await answers(pair, ada)).toEqual(isRefused);
    expect(await answers(pair, { "x-user": "bob" })).toEqual(passes);
    expect(await processes.problems()).toEqual([]);
  },
);

it.each(places)(
  "a secret replaced in one process is refused by the other from its next request on: %s",
  async (_name, place) => {
    const [, ...pair] = await twoProcesses(place());
    const { id, secret } = await createKey(pair[0], "jane");
    expect(await answers(pair, bearer(secret))).toEqual(passes);
    const next = String(await pair[0].command("replaceKey", id));
    expect(await post(pair[1], bearer(secret))).toBe(401);
    expect(await answers(pair, bearer(secret))).toEqual(isRefused);
    expect(await answers(pair, bearer(next))).toEqual(passes);
  },
);

/** Sends requests to both processes with a secret until it is stopped. Returns all answers. */
function load(pair: Pair, secret: string) {
  let goesOn = true;
  const seen: number[] = [];
  const clients = [...pair, ...pair].map(async (to) => {
    while (goesOn) seen.push(await post(to, bearer(secret)));
  });
  return {
    async answered(count: number): Promise<void> {
      const enough = seen.length + count;
      while (seen.length < enough) await Promise.race([...clients, new Promise(setImmediate)]);
    },
    async stop(): Promise<ReadonlySet<number>> {
      goesOn = false;
      await Promise.all(clients);
      return new Set(seen);
    },
  };
}

/** Moves both clocks past the overlap. Nothing may run, because one process could take the other for dead. */
async function outliveOverlap(pair: Pair): Promise<void> {
  for (const one of pair) await one.command("push", overlapMs);
  // Once this is answered, each process has renewed its own lease.
  for (const one of pair) await one.command("recover");
}

it.each(places)(
  "a key rotated under load accepts both secrets during the overlap, and only the new one after it: %s",
  async (_name, place) => {
    const [processes, ...pair] = await twoProcesses(place());
    const { id, secret: first } = await createKey(pair[0], "jane");
    let secret = first;
    for (const rotating of pair) {
      const old = load(pair, secret);
      await old.answered(12);
      const next = String(await rotating.command("rotateKey", id));
      const young = load(pair, next);
      await Promise.all([old.answered(12), young.answered(12)]);
      expect(await old.stop()).toEqual(passes);
      expect(await young.stop()).toEqual(passes);
      await outliveOverlap(pair);
      const again = load(pair, next);
      expect(await answers(pair, bearer(secret))).toEqual(isRefused);
      await again.answered(12);
      expect(await again.stop()).toEqual(passes);
      secret = next;
    }
    expect(await processes.problems()).toEqual([]);
  },
);
