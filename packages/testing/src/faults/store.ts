import type { Store } from "@tollgate/core/store";
import { type Barrier, createBarrier } from "../barrier.ts";

/** The verbs of a store that can have a fault. */
export type StoreVerb =
  | "migrate"
  | "openStep"
  | "openAttempt"
  | "settleStep"
  | "recordRefusal"
  | "renewLease"
  | "lapsedSteps";

/** A fault at a call of the store. */
export interface StoreFault {
  readonly verb: StoreVerb;
  /** The number of the call, from 1. */
  readonly nth: number;
  /** Before the change, or after it was committed. */
  readonly when: "before" | "after";
  /** `fail` rejects. `wait` waits until it is released, and then continues. Default `fail`. */
  readonly action?: "fail" | "wait";
  /** Whether the fault also applies to later calls, until it is removed. Default false. */
  readonly lasting?: boolean;
}

/** Controls a fault in a test. `reached` and `release` are for `wait`. */
export interface RunningFault extends Barrier {
  /** Removes the fault, and releases waiting calls. */
  mend(): void;
  /** The number of calls of the verb so far. */
  calls(): number;
}

/**
 * Wraps a store so that one call of one verb, or all calls from it on, fail or wait. Everything else goes to the store
 * unchanged.
 */
export function faultyStore(
  store: Store,
  { on }: { readonly on: StoreFault },
): { readonly store: Store; readonly fault: RunningFault } {
  const barrier = createBarrier();
  const endless = new AbortController().signal;
  let calls = 0;
  let isMended = false;

  const happens = (call: number): boolean =>
    !isMended && (on.lasting ? call >= on.nth : call === on.nth);
  const applyFault = async (): Promise<void> => {
    if (on.action === "wait") return barrier.pass(endless);
    throw new Error(`The store failed ${on.when} call ${calls} of ${on.verb}.`);
  };
  const withFault = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    const isHit = happens(++calls);
    if (isHit && on.when === "before") await applyFault();
    const result = await call();
    if (isHit && on.when === "after") await applyFault();
    return result;
  };

  return {
    store: { ...store, ...wrapVerb(store, on.verb, withFault) },
    fault: {
      reached: barrier.reached,
      release: barrier.release,
      mend() {
        isMended = true;
        barrier.release();
      },
      calls: () => calls,
    },
  };
}

type WrapCall = <Result>(call: () => Promise<Result>) => Promise<Result>;

function wrapVerb(store: Store, verb: StoreVerb, wrap: WrapCall): Partial<Store> {
  const verbs: Pick<Store, StoreVerb> = {
    migrate: (mode) => wrap(() => store.migrate(mode)),
    openStep: (intent) => wrap(() => store.openStep(intent)),
    openAttempt: (intent) => wrap(() => store.openAttempt(intent)),
    settleStep: (settlement) => wrap(() => store.settleStep(settlement)),
    recordRefusal: (refusal) => wrap(() => store.recordRefusal(refusal)),
    renewLease: (renewal) => wrap(() => store.renewLease(renewal)),
    lapsedSteps: (query) => wrap(() => store.lapsedSteps(query)),
  };
  return { [verb]: verbs[verb] };
}
