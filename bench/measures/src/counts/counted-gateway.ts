/**
 * A governed gateway behind `serve` that counts the work of a request. It runs in a separate process, so the client, the
 * upstream and the test are not counted. Arguments: the store (`memory`, `sqlite` or `postgres`), the address of the
 * upstream, and the database: a file or an address.
 */
import { subscribe } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { PerformanceObserver } from "node:perf_hooks";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { getHeapSpaceStatistics, getHeapStatistics, promiseHooks } from "node:v8";
import { createGateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import type { Store } from "@tollgate/core/store";
import { serve } from "@tollgate/node";
import { openaiCompatible } from "@tollgate/provider-openai";
import { memoryStore } from "@tollgate/store-memory";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";
import pg from "pg";

/** The work of the process between two orders. */
export interface Counts {
  /** SQL statements, including `BEGIN` and `COMMIT`. */
  readonly statements: number;
  /** Promises, including those that V8 creates for an `await`; 0 unless requested. */
  readonly promises: number;
  /** Bytes allocated on the heap of V8; valid only without collections. */
  readonly allocated: number;
  readonly collections: number;
  /** Growth of the old space in bytes: objects that survived two collections and were not swept since. */
  readonly promoted: number;
  /** Sockets opened to the upstream. */
  readonly sockets: number;
  /** Bytes written through the operating system, without HTTP; 0 if `/proc` does not exist. */
  readonly written: number;
}

/** The next order: start counting, collect the young generation, or report. */
export type CountingOrder =
  | { readonly order: "start"; readonly promises: boolean }
  | { readonly order: "collect" }
  | { readonly order: "report" };

const [kind = "", upstream = "", database = ""] = process.argv.slice(2);
const price = { input: "0.25", output: "2", cachedInput: "0.025", maxOutputTokens: 16_000 };
const collect = globalThis.gc;
if (collect === undefined) throw new Error("Start this process with --expose-gc.");

const totals = { statements: 0, promises: 0, collections: 0 };
const upstreamSockets: Socket[] = [];
const clientSockets: Socket[] = [];
countStatements();
subscribe("net.client.socket", (message) => upstreamSockets.push(socketOf(message)));
subscribe("net.server.socket", (message) => clientSockets.push(socketOf(message)));
const collections = new PerformanceObserver((list) => {
  totals.collections += list.getEntries().length;
});
collections.observe({ entryTypes: ["gc"] });

const gateway = createGateway({
  store: openStore(),
  providers: {
    up: openaiCompatible({ baseURL: upstream, apiKey: "counted", models: { "a/model": price } }),
  },
  policy: definePolicy({
    rules: [
      permit("counted", { gateway: "up", upTo: "D2_CONFIDENTIAL" }),
      forbid("no-previews", { model: "*/*/*-preview" }),
    ],
  }),
  budgets: [
    { id: "key-day", scope: { each: "key" }, limit: { usd: 5_000 }, period: "day", mode: "hard" },
    {
      id: "acme-month",
      scope: { organization: "acme" },
      limit: { usd: 90_000 },
      period: "month",
      mode: "hard",
    },
  ],
  maintenance: false,
});
const { secret } = await gateway.keys.create({
  organizationId: "acme",
  userId: "ada",
  label: "counted",
});
const server = await serve(gateway, { port: 0 });

let before = snapshot();
let stopPromises: ReturnType<typeof promiseHooks.onInit> | null = null;
process.on("message", async (asked: CountingOrder) => {
  if (asked.order === "report") return void process.send?.(await report());
  if (asked.order === "collect") collect({ type: "minor" });
  else {
    collect();
    collect();
    if (asked.promises)
      stopPromises = promiseHooks.onInit(() => {
        totals.promises += 1;
      });
    // The entries of the garbage collector arrive in the next turns of the event loop.
    await new Promise((resolve) => setTimeout(resolve, 20));
    before = snapshot();
  }
  process.send?.(null);
});
process.on("disconnect", async () => {
  await server.close();
  await gateway.close();
  process.exit(0);
});
process.send?.({ url: server.url, secret });

function openStore(): Store {
  if (kind === "memory") return memoryStore();
  return kind === "sqlite" ? sqliteStore({ filename: database }) : postgresStore({ url: database });
}

async function report(): Promise<Counts> {
  const after = snapshot();
  stopPromises?.();
  stopPromises = null;
  await new Promise((resolve) => setTimeout(resolve, 20));
  return {
    statements: after.statements - before.statements,
    promises: after.promises - before.promises,
    allocated: after.used - before.used,
    collections: totals.collections - before.collections,
    promoted: after.old - before.old,
    sockets: after.sockets - before.sockets,
    written: after.written - before.written,
  };
}

function snapshot() {
  const old = getHeapSpaceStatistics().filter(({ space_name: name }) => name === "old_space");
  return {
    ...totals,
    used: getHeapStatistics().used_heap_size,
    old: old.reduce((sum, space) => sum + space.space_used_size, 0),
    sockets: upstreamSockets.length,
    written: bytesWritten(),
  };
}

/** SQLite and sockets both write through the operating system. Sockets know their share. */
function bytesWritten(): number {
  if (process.platform !== "linux") return 0;
  const all = /^wchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1];
  const toSockets = [...upstreamSockets, ...clientSockets].reduce(
    (sum, socket) => sum + socket.bytesWritten,
    0,
  );
  return Number(all ?? Number.NaN) - toSockets;
}

function countStatements(): void {
  for (const name of ["run", "get", "all", "iterate"] as const)
    counted(StatementSync.prototype, name);
  counted(DatabaseSync.prototype, "exec");
  counted(pg.Client.prototype, "query");
}

/** Replaces a method with one that counts its calls. */
function counted(prototype: object, name: string): void {
  const method: unknown = Reflect.get(prototype, name);
  if (typeof method !== "function") throw new Error(`The driver has no ${name}.`);
  Reflect.set(prototype, name, function (this: unknown, ...parameters: unknown[]): unknown {
    totals.statements += 1;
    return Reflect.apply(method, this, parameters);
  });
}

function socketOf(message: unknown): Socket {
  const socket: unknown = Reflect.get(Object(message), "socket");
  if (isSocket(socket)) return socket;
  throw new Error("The diagnostics channel sent no socket.");
}

function isSocket(value: unknown): value is Socket {
  return typeof value === "object" && value !== null && "bytesWritten" in value;
}
