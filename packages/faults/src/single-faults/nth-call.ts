import type { Store } from "@tollgate/core/store";
import { wrapStore } from "../stores/wrap-store.ts";

/** What befalls one call of a store, whichever it is. */
export interface CallFault {
  /** The call it befalls, from 1. */
  readonly nth: number;
  /** Fails before the change or after it was committed, or the client leaves while the call runs. */
  readonly action: "fail before" | "fail after" | "client leaves";
  /** Whether every later call fails too, until it is mended. */
  readonly lasting: boolean;
}

/** A store whose calls are counted, and one of which meets a fault. */
export interface CountedStore {
  readonly store: Store;
  /** The name of each call so far. */
  readonly calls: readonly string[];
  mend(): void;
}

export function countedStore(
  beneath: Store,
  fault: CallFault | null,
  leave: () => void,
): CountedStore {
  const calls: string[] = [];
  let isMended = false;
  const isHit = (call: number): boolean =>
    fault !== null && !isMended && (fault.lasting ? call >= fault.nth : call === fault.nth);
  return {
    calls,
    store: wrapStore(beneath, async (name, call) => {
      const number = calls.push(name);
      if (!isHit(number)) return call();
      if (fault?.action === "client leaves") leave();
      if (fault?.action === "fail before") throw failed(name, number);
      const result = await call();
      if (fault?.action === "fail after") throw failed(name, number);
      return result;
    }),
    mend() {
      isMended = true;
    },
  };
}

function failed(name: string, number: number): Error {
  return new Error(`Call ${number} of the store, ${name}, failed.`);
}
