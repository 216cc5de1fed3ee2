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
/** A peer's last renewal may be one round older than this process's own: its lease could lapse after a longer gap. */
const mostGap = leaseMs - renewEvery;
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
  let renewed = timesOf(line);

  function schedule(): void {
    if (isStopped) return;
    const begin = (): void => {
      round = beat().then(schedule);
    };
    // An open Step's deadline keeps the process alive, and with it these rounds.
    cancel = line.clock.after(renewEvery, begin, { background: true });
  }

  async function beat(): Promise<void> {
    const at = timesOf(line);
    const isRenewed = await attempt(line, "lease", () => renew(line));
    const mayRecover = isRenewed && !isLate(renewed, at);
    if (isRenewed) renewed = at;
    if (!recovers) return;
    if (mayRecover) await attempt(line, "recovery", () => recoverSteps(line));
    if (++rounds % sweepEvery === 0) sweeping ??= sweepOnce();
  }

  /** Not waited for: much to remove must not keep the lease from being renewed. */
  async function sweepOnce(): Promise<void> {
    await attempt(line, "sweep", () => sweep(line, () => isStopped));
    sweeping = null;
  }

  return {
    async start() {
      renewed = timesOf(line);
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
async function attempt(line: Line, what: string, run: () => Promise<unknown>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch {
    line.notify({ type: "gateway.degraded", at: line.clock.now(), what });
    return false;
  }
}

interface Times {
  readonly wall: number;
  readonly monotonic: number;
}

function timesOf({ clock }: Line): Times {
  return { wall: clock.now(), monotonic: clock.monotonic() };
}

/**
 * Whether this process missed a renewal of its own: it was suspended, or its store did not answer. Its peers probably
 * missed theirs for the same reason and are about to renew, so it waits one more round before it recovers their Steps.
 * Monotonic time stops while a machine is suspended and wall time can be set back, so either counts.
 */
function isLate(last: Times, now: Times): boolean {
  return Math.max(now.wall - last.wall, now.monotonic - last.monotonic) > mostGap;
}
