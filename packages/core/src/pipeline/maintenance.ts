import type { GatewayContext } from "./context.ts";
import { leaseClockOf } from "./lease-clock.ts";
import { recoverSteps } from "./recover.ts";
import { sweep } from "./sweep.ts";

/** What runs by itself while a gateway is open. */
export interface Maintenance {
  /** Takes the process's lease; nothing may be opened before. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const renewalIntervalMs = 5_000;
const leaseMs = 15_000;
/** A peer's last renewal may be one round older than this process's own: its lease could lapse after a longer gap. */
const maxRenewalGapMs = leaseMs - renewalIntervalMs;
/** Rounds between two sweeps: a minute. */
const roundsPerSweep = 12;

/** Renews the process's lease and recovers what other processes left. One round ends before the next begins. */
export function createMaintenance(
  context: GatewayContext,
  { recovers }: { readonly recovers: boolean },
): Maintenance {
  let cancel = (): void => {};
  let round: Promise<void> = Promise.resolve();
  let sweeping: Promise<void> | null = null;
  let isStopped = false;
  let rounds = 0;
  let renewed = timesOf(context);

  function schedule(): void {
    if (isStopped) return;
    const begin = (): void => {
      round = beat().then(schedule);
    };
    // An open Step's deadline keeps the process alive, and with it these rounds.
    cancel = context.clock.after(renewalIntervalMs, begin, { background: true });
  }

  async function beat(): Promise<void> {
    const at = timesOf(context);
    const isRenewed = await attempt(context, "lease", () => renew(context));
    const mayRecover = isRenewed && !isLate(renewed, at);
    if (isRenewed) renewed = at;
    if (!recovers) return;
    if (mayRecover) await attempt(context, "recovery", () => recoverSteps(context));
    if (++rounds % roundsPerSweep === 0) sweeping ??= sweepOnce();
  }

  /** Not waited for: much to remove must not keep the lease from being renewed. */
  async function sweepOnce(): Promise<void> {
    await attempt(context, "sweep", () => sweep(context, () => isStopped));
    sweeping = null;
  }

  return {
    async start() {
      renewed = timesOf(context);
      await renew(context);
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

async function renew(context: GatewayContext): Promise<void> {
  const { processId } = context.openSteps;
  const at = context.clock.now();
  const { renewal, steps } = context.openSteps.nextRenewal();
  const time = { at, until: at + leaseMs, clock: leaseClockOf(context) };
  await context.store.renewLease({ processId, renewal, ...time, steps });
}

/** A failure here has no caller to tell: the observers hear of it, and the next round tries again. */
async function attempt(
  context: GatewayContext,
  what: string,
  run: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await run();
    return true;
  } catch {
    context.notify({ type: "gateway.degraded", at: context.clock.now(), what });
    return false;
  }
}

interface Times {
  readonly wall: number;
  readonly monotonic: number;
}

function timesOf({ clock }: GatewayContext): Times {
  return { wall: clock.now(), monotonic: clock.monotonic() };
}

/**
 * Whether this process missed a renewal of its own: it was suspended, or its store did not answer. Its peers probably
 * missed theirs for the same reason and are about to renew, so it waits one more round before it recovers their Steps.
 * Monotonic time stops while a machine is suspended and wall time can be set back, so either counts.
 */
function isLate(last: Times, now: Times): boolean {
  return Math.max(now.wall - last.wall, now.monotonic - last.monotonic) > maxRenewalGapMs;
}
