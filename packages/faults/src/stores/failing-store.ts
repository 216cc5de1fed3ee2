import type { Store } from "@tollgate/core/store";
import { seededRandom } from "../random.ts";
import { wrapStore } from "./wrap-store.ts";

const verbs = ["openStep", "openAttempt", "settleStep"];

/** A store of which so many of a thousand changes of Steps fail: half of them although they were written. */
export function failingStore(store: Store, failing: number): Store {
  if (failing === 0) return store;
  const random = seededRandom(process.pid);
  return wrapStore(store, async (name, call) => {
    const fails = verbs.includes(name) && random() * 1_000 < failing;
    if (fails && random() < 0.5) throw new Error("the store did not do it");
    const result = await call();
    if (fails) throw new Error("the store's answer was lost");
    return result;
  });
}
