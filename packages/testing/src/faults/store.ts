import type { Store } from "@tollgate/core/store";
import { type Barrier, createBarrier } from "../barrier.ts";

/** The verbs of a store that a fault can befall. */
export type StoreVerb =
  | "migrate"
  | "openStep"
  | "openAttempt"
  | "settleStep"
  | "recordRefusal"
  | "renewLease"
  | "lapsedSteps";

/** What goes wrong, and at which call. */
export interface StoreFault {
  readonly verb: StoreVerb;
  /** The call it happens at, from 1. */
  readonly nth: number;
  /** Before the change, or after it was committed. */
  readonly when: "before" | "after";
  /** `fail` rejects; `wait` stands still until it is released, and then goes on. Default `fail`. */
  readonly action?: "fail" | "wait";
  /** Whether it happens at every call from then on, until it is mended. Default false. */
  readonly lasting?: boolean;
}

/** A fault in the hands of a test: `reached` and `release` are of its `wait`. */
export interface RunningFault extends Barrier {
  /** From now on the store is whole; what waits goes on. */
  mend(): void;
  /** How many calls of the verb there were. */
  calls(): number;
}

/**
 * A store that fails or stands still at one call of one verb, or from it on. Whatever the fault does not name goes to
 * the store beneath unchanged.
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
