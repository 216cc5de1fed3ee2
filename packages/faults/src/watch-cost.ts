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
const lookEveryMs = 100;

export function createCostWatch(): CostWatch {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  let before = 0;
  let most = 0;
  let timer: NodeJS.Timeout | undefined;
  const collect = garbageCollector();
  const held = (): number => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const look = (): void => {
    most = Math.max(most, held());
  };
  return {
    start() {
      before = held();
      most = before;
      delay.reset();
      delay.enable();
      timer = setInterval(look, lookEveryMs);
    },
    stop() {
      look();
      clearInterval(timer);
      delay.disable();
      return { heldBytes: most - before, delayMs: delay.percentile(99) / 1e6 - resolutionMs };
    },
  };
}
