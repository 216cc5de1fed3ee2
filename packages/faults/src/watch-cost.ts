import { monitorEventLoopDelay } from "node:perf_hooks";
import { garbageCollector } from "./collect-garbage.ts";

/** Watches what something costs this process while it goes on. */
export interface CostWatch {
  start(): void;
  /**
   * The most memory it held beyond what was held before, garbage not counted, and how late the event loop was: the 99th
   * percentile.
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
