import { setImmediate as nextTurn } from "node:timers/promises";
import type { Store } from "@tollgate/core/store";
import { aroundStore } from "./around-store.ts";

/** A store that knows when none of its calls runs. */
export interface QuietStore {
  readonly store: Store;
  /** Resolves when no call has run for a few turns of the event loop. */
  rest(): Promise<void>;
}

/** Turns in which what waited for an answer of the store must ask for the next. */
const turns = 6;

/** Watches a store, so that a test on a clock of its own can let real input and output come to rest. */
export function quietStore(beneath: Store): QuietStore {
  const running = new Set<Promise<unknown>>();
  const store = aroundStore(beneath, (_, call) => {
    const answer = call();
    running.add(answer);
    const end = (): void => void running.delete(answer);
    answer.then(end, end);
    return answer;
  });
  return {
    store,
    async rest() {
      for (let quiet = 0; quiet < turns; quiet++) {
        await nextTurn();
        if (running.size === 0) continue;
        await Promise.allSettled(running);
        quiet = 0;
      }
    },
  };
}
