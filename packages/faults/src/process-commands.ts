import { readdirSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Authenticate, Gateway } from "@tollgate/core";
import { garbageCollector } from "./collect-garbage.ts";

const organizationId = "acme";

/** How long a rotated secret still works, in milliseconds: longer than a test. */
export const overlapMs = 60_000;

/** Trusts a header that names the user, like a host in a private network. */
export const authenticate: Authenticate = (request) => {
  const userId = request.headers.get("x-user");
  return userId === null ? null : { organizationId, userId, label: "web" };
};

/** Commands for a test to manage the keys of a gateway process. */
export function keyCommands({ keys }: Gateway) {
  return {
    createKey: async (user: unknown) => {
      const who = { organizationId, userId: String(user ?? "jane"), label: "test key" };
      const { key, secret } = await keys.create(who);
      return { id: key.id, secret };
    },
    rotateKey: async (id: unknown) =>
      (await keys.rotate({ organizationId, id: String(id), overlap: overlapMs })).secret,
    replaceKey: async (id: unknown) =>
      (await keys.rotate({ organizationId, id: String(id) })).secret,
    keysOf: async (user: unknown) =>
      (await keys.list({ organizationId, userId: String(user) })).data.map(({ id }) => id),
    revokeKey: (id: unknown) => keys.revoke({ organizationId, id: String(id) }),
    revokeUser: (user: unknown) => keys.revoke({ organizationId, userId: String(user) }),
  };
}

/** Measures the memory and the event loop delay of this process for a time. */
export interface CostWatch {
  start(): void;
  /**
   * Returns the maximum growth of memory without garbage, and the 99th percentile of the event loop delay.
   */
  stop(): { readonly heldBytes: number; readonly delayMs: number };
}

const resolutionMs = 5;
const sampleEveryMs = 100;

export function createCostWatch(): CostWatch {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  let before = 0;
  let maxHeld = 0;
  let timer: NodeJS.Timeout | undefined;
  const collect = garbageCollector();
  const held = (): number => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const sample = (): void => {
    maxHeld = Math.max(maxHeld, held());
  };
  return {
    start() {
      before = held();
      maxHeld = before;
      delay.reset();
      delay.enable();
      timer = setInterval(sample, sampleEveryMs);
    },
    stop() {
      sample();
      clearInterval(timer);
      delay.disable();
      return { heldBytes: maxHeld - before, delayMs: delay.percentile(99) / 1e6 - resolutionMs };
    },
  };
}

/** The resources of a process after garbage collection. */
export interface Holdings {
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** Open file descriptors: files and sockets. */
  readonly descriptors: number;
  /** Active resources of the event loop, by kind. */
  readonly sockets: number;
  readonly timers: number;
  readonly listeners: number;
}

/** `timers` is the number of the clock's timers, which the event loop doesn't count. */
export async function measure(timers: number): Promise<Holdings> {
  const collect = garbageCollector();
  // Finalizers free more memory, so collect several times.
  for (let round = 0; round < 3; round++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, rss } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  return {
    heapBytes: heapUsed,
    rssBytes: rss,
    descriptors: readdirSync("/proc/self/fd").length,
    sockets: resources.filter((kind) => kind.startsWith("TCP")).length,
    timers: timers + resources.filter((kind) => kind === "Timeout").length,
    listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
  };
}
