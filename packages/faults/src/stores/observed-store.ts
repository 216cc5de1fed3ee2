import { setImmediate as nextTurn } from "node:timers/promises";
import type { Store } from "@tollgate/core/store";
import { wrapStore } from "./wrap-store.ts";

/** A store that knows when none of its calls runs. */
export interface ObservedStore {
  readonly store: Store;
  /** Resolves when no call has run for a few turns of the event loop. */
  untilIdle(): Promise<void>;
}

/** The turns of the event loop within which code that waited for the store makes its next call. */
const turns = 6;

/** Observes a store, so a test with its own clock can wait for real input and output. */
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
