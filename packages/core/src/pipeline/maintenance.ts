import { leaseClockOf } from "./lease-clock.ts";
import type { Line } from "./line.ts";
import { recoverSteps } from "./recover.ts";
import { sweep } from "./sweep.ts";

/** What runs by itself while a gateway is open. */
export interface Maintenance {
  /** Takes the process's lease; nothing may be opened before. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const renewEvery = 5_000;
const leaseMs = 15_000;
/** Rounds between two sweeps: a minute. */
const sweepEvery = 12;

/** Renews the process's lease and recovers what other processes left. One round ends before the next begins. */
export function createMaintenance(
  line: Line,
  { recovers }: { readonly recovers: boolean },
): Maintenance {
  let cancel = (): void => {};
  let round: Promise<void> = Promise.resolve();
  let sweeping: Promise<void> | null = null;
  let isStopped = false;
  let rounds = 0;

  function schedule(): void {
    if (isStopped) return;
    cancel = line.clock.after(renewEvery, () => {
      round = beat().then(schedule);
    });
  }

  async function beat(): Promise<void> {
    await attempt(line, "lease", () => renew(line));
    if (!recovers) return;
    await attempt(line, "recovery", () => recoverSteps(line));
    if (++rounds % sweepEvery === 0) sweeping ??= sweepOnce();
  }

  /** Not waited for: much to remove must not keep the lease from being renewed. */
  async function sweepOnce(): Promise<void> {
    await attempt(line, "sweep", () => sweep(line, () => isStopped));
    sweeping = null;
  }

  return {
    async start() {
      await renew(line);
      schedule();
    },
    async stop() {
      isStopped = true;
      cancel();
      await round;
      await sweeping;
    },
  };
}

async function renew(line: Line): Promise<void> {
  const { processId } = line.openSteps;
  const at = line.clock.now();
  const { renewal, steps } = line.openSteps.nextRenewal();
  const time = { at, until: at + leaseMs, clock: leaseClockOf(line) };
  await line.store.renewLease({ processId, renewal, ...time, steps });
}

/** A failure here has no caller to tell: the observers hear of it, and the next round tries again. */
async function attempt(line: Line, what: string, run: () => Promise<unknown>): Promise<void> {
  try {
    await run();
  } catch {
    line.notify({ type: "gateway.degraded", at: line.clock.now(), what });
  }
}
