import { setImmediate as nextTurn } from "node:timers/promises";
import type { Store } from "@tollgate/core/store";
import { wrapStore } from "./wrap-store.ts";

/** A store that knows when none of its calls runs. */
export interface ObservedStore {
  readonly store: Store;
  /** Resolves when no call has run for a few turns of the event loop. */
  untilIdle(): Promise<void>;
}

/** Turns in which what waited for an answer of the store must ask for the next. */
const turns = 6;

/** Watches a store, so that a test on a clock of its own can let real input and output come to rest. */
export function observeStore(beneath: Store): ObservedStore {
  const running = new Set<Promise<unknown>>();
  const store = wrapStore(beneath, (_, call) => {
    const answer = call();
    running.add(answer);
    const end = (): void => void running.delete(answer);
    answer.then(end, end);
    return answer;
  });
  return {
    store,
    async untilIdle() {
      for (let quiet = 0; quiet < turns; quiet++) {
        await nextTurn();
        if (running.size === 0) continue;
        await Promise.allSettled(running);
        quiet = 0;
      }
    },
  };
}
