import type { StoreStatus } from "../contracts/store.ts";
import { orTimeout } from "../kernel/bounded-wait.ts";
import type { GatewayContext } from "./context.ts";
import type { Lifecycle, Maintenance } from "./process.ts";

/** Whether a gateway should get requests. */
export interface Health {
  readonly ready: boolean;
  /**
   * Why it is not ready. `closing`: `close()` was called. `store`: the store can't open, or doesn't answer within a second.
   * `lease`: the process couldn't renew its lease for 12 seconds, so other processes will soon settle its Steps.
   */
  readonly reasons: readonly ("closing" | "store" | "lease")[];
  /**
   * Faults that don't stop it. `sealing`: evidence leaves have waited for their checkpoint longer than
   * `evidence.alarmAfter`.
   */
  readonly degraded: readonly "sealing"[];
}

/** How busy a gateway is in this process, at one moment. */
export interface GatewayStatus {
  /** Steps that this process still has to settle. */
  readonly openSteps: number;
  /** Requests of known callers that were admitted and have not ended, at most `limits.openRequests`. */
  readonly admitted: number;
  /** Answers that are read to their end although their clients left, at most `limits.drains`. */
  readonly drains: number;
  /** Whether `close()` was called. */
  readonly closing: boolean;
  /** Milliseconds since the process renewed its lease, or since the gateway was created if it hasn't opened yet. */
  readonly leaseAgeMs: number;
  /** Milliseconds since every evidence leaf was sealed. Null if the gateway doesn't seal. */
  readonly unsealedMs: number | null;
  readonly store: StoreStatus;
}

/** Reads counters that the process keeps anyway. */
export function createStatus(
  context: Pick<GatewayContext, "openSteps" | "admission" | "drains" | "sequencer" | "store">,
  lifecycle: Pick<Lifecycle, "isClosing">,
  maintenance: Pick<Maintenance, "leaseAge">,
): () => GatewayStatus {
  return () => ({
    openSteps: context.openSteps.count(),
    admitted: context.admission.admitted,
    drains: context.drains.taken(),
    closing: lifecycle.isClosing(),
    leaseAgeMs: maintenance.leaseAge(),
    unsealedMs: context.sequencer?.unsealedMs() ?? null,
    store: context.store.status(),
  });
}

const probeMs = 1_000;
const probeEveryMs = 5_000;
const maxLeaseAgeMs = 12_000;

/** Checks whether a gateway is ready. Opens its store if nothing has yet, and asks it at most every five seconds. */
export function createHealthCheck(
  { clock, store, sequencer }: Pick<GatewayContext, "clock" | "store" | "sequencer">,
  lifecycle: Pick<Lifecycle, "ready" | "isClosing">,
  maintenance: Pick<Maintenance, "leaseAge">,
): () => Promise<Health> {
  let last: { readonly at: number; readonly answers: Promise<boolean> } | null = null;

  function storeAnswers(): Promise<boolean> {
    const at = clock.monotonic();
    if (last !== null && at - last.at < probeEveryMs) return last.answers;
    const asked = orTimeout(clock, probeMs, async () => {
      await lifecycle.ready();
      await store.migrate("check");
    });
    const answers = asked.then(
      () => true,
      () => false,
    );
    last = { at, answers };
    return answers;
  }

  return async () => {
    const reasons: Health["reasons"][number][] = [];
    if (!lifecycle.isClosing()) {
      if (!(await storeAnswers())) reasons.push("store");
      if (maintenance.leaseAge() > maxLeaseAgeMs) reasons.push("lease");
    }
    if (lifecycle.isClosing()) reasons.push("closing");
    const degraded = sequencer?.isLate() ? (["sealing"] as const) : [];
    return { ready: reasons.length === 0, reasons, degraded };
  };
}
