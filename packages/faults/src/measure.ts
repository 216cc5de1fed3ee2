import { readdirSync } from "node:fs";
import { garbageCollector } from "./collect-garbage.ts";

/** What a process holds on to, once garbage is collected. */
export interface Holdings {
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** Open file descriptors: files and sockets. */
  readonly descriptors: number;
  /** What keeps the event loop busy, by kind. */
  readonly sockets: number;
  readonly timers: number;
  readonly listeners: number;
}

/** `timers` are those of the clock, which the event loop does not count. */
export async function measure(timers: number): Promise<Holdings> {
  const collect = garbageCollector();
  // Finalizers free more: a second collection takes what the first one let go.
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
