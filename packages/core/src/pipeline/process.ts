import type { Sweep, SweepResult } from "../contracts/retention.ts";
import type { LapsedStep, LeaseClock, StepSettlement } from "../contracts/step-verbs.ts";
import type { Attempt } from "../domain/step.ts";
import { sumsOf } from "../domain/step-sums.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import {
  activityRemovedLeaf,
  createLeaf,
  settledLeaf,
  transcriptsErasedLeaf,
} from "../evidence/leaves.ts";
import { meterInterrupted } from "../evidence/meter.ts";
import type { LastUsed } from "../identity/last-used.ts";
import { type Clock, systemClock } from "../kernel/clock.ts";
import { type Duration, parseDuration } from "../kernel/duration.ts";
import type { GatewayContext } from "./context.ts";
import { orUnavailable } from "./store-calls.ts";

/** A gateway from its first use to its end. */
export interface Lifecycle {
  /**
   * Opens the store, brings it up to date and takes the lease, once; where that failed, the next caller tries again.
   * @throws GatewayError `overloaded` when the gateway closes unopened
   */
  ready(): Promise<void>;
  /** Is `ready` for requests that were let in; null once the store is open. */
  open(): Promise<void> | null;
  /**
   * Lets a request in; closing waits until it leaves.
   * @throws GatewayError `overloaded` when the gateway closes
   */
  enter(): void;
  leave(): void;
  /**
   * Admits nothing more, lets what was admitted end, ends the rest, and closes what the gateway opened. A further call
   * can only make it end sooner.
   * @throws GatewayError `invalid_argument` for a bound that is no duration
   */
  close(options?: CloseOptions): Promise<void>;
}

/** Options for closing a gateway. */
export interface CloseOptions {
  /**
   * The longest that closing may take. Default `deadlines.close` (25 s). When a fifth of it is left, but at most five
   * seconds, answers that still run end with an error.
   */
  readonly within?: Duration;
}

/** What is left of the bound to settle what was ended, to answer it and to close the store: a part of it, and at most. */
const endingShare = 1 / 5;
const maxEndingMs = 5_000;

interface Parts {
  readonly maintenance: Maintenance;
  readonly lastUsed: LastUsed;
}

export function createLifecycle(context: GatewayContext, parts: Parts): Lifecycle {
  const opening = createOpening(async () => {
    await context.store.migrate();
    await notePolicy(context);
    await context.budgets.reload();
    await parts.maintenance.start();
  });
  const requests = createRequests();
  let closing: Promise<void> | null = null;
  let isClosed = false;
  const ending = createDeadline(context.clock);
  const giveUp = createDeadline(context.clock);
  const over = createDeadline(context.clock);

  async function shutDown(): Promise<void> {
    void ending.passed.then(context.openSteps.stopAll);
    await Promise.race([requests.ended(), ending.passed]);
    await Promise.race([context.openSteps.idle(), giveUp.passed]);
    await Promise.race([requests.ended(), giveUp.passed]);
    await Promise.race([closeParts(), over.passed]);
    isClosed = true;
    for (const deadline of [ending, giveUp, over]) deadline.cancel();
  }

  async function closeParts(): Promise<void> {
    await opening.ended();
    await parts.maintenance.stop();
    await parts.lastUsed.close();
    await Promise.all([...context.providers.values()].map((provider) => provider.close()));
    await context.store.close();
  }

  return {
    async ready() {
      if (closing && !opening.hasBegun()) throw shuttingDown();
      await opening.open();
    },
    open: opening.open,
    enter() {
      if (closing) throw shuttingDown();
      requests.begin();
    },
    leave: requests.end,
    async close(options) {
      const within = boundOf(options, context.deadlines.close);
      if (isClosed) return;
      const rest = Math.min(maxEndingMs, within * endingShare);
      ending.within(within - rest);
      giveUp.within(within - rest * endingShare);
      over.within(within);
      closing ??= shutDown();
      await closing;
    },
  };
}

/** Records that another policy decides from now on, once: of no organization, and by nobody that is known. */
async function notePolicy({ store, policy, ids, clock }: GatewayContext): Promise<void> {
  const { version } = policy;
  const id = ids.uuid();
  await store.evidence.notePolicy({
    version,
    leaf: (before) =>
      createLeaf(
        { id, organizationId: "", kind: "policy.changed", at: clock.now() },
        { actor: null, before, policy: version },
      ),
  });
}

/** Opens once; where that failed, the next caller tries again. */
function createOpening(openAll: () => Promise<void>) {
  let opening: Promise<void> | null = null;
  let isOpen = false;
  return {
    open(): Promise<void> | null {
      if (isOpen || opening) return isOpen ? null : opening;
      const attempt = openAll();
      opening = attempt;
      attempt.then(
        () => {
          isOpen = true;
        },
        () => {
          if (opening === attempt) opening = null;
        },
      );
      return attempt;
    },
    hasBegun: () => opening !== null,
    ended: async () => opening?.catch(() => {}),
  };
}

/** The requests that were admitted and have not ended. */
function createRequests() {
  const ended = Promise.withResolvers<void>();
  let running = 0;
  let isAwaited = false;
  return {
    begin(): void {
      running++;
    },
    end(): void {
      running--;
      if (isAwaited && running === 0) ended.resolve();
    },
    /** Resolves once none runs; to be asked for when no more are admitted. */
    ended(): Promise<void> {
      isAwaited = true;
      if (running === 0) ended.resolve();
      return ended.promise;
    },
  };
}

/** A moment that can be moved forward, and never back. */
interface Deadline {
  readonly passed: Promise<void>;
  within(milliseconds: number): void;
  cancel(): void;
}

function createDeadline(clock: Clock): Deadline {
  const passed = Promise.withResolvers<void>();
  let at = Number.POSITIVE_INFINITY;
  let cancel = (): void => {};
  return {
    passed: passed.promise,
    within(milliseconds) {
      const next = clock.monotonic() + milliseconds;
      if (next >= at) return;
      at = next;
      cancel();
      cancel = clock.after(milliseconds, passed.resolve);
    },
    cancel: () => cancel(),
  };
}

function boundOf({ within }: CloseOptions = {}, usual: number): number {
  const bound = within === undefined ? usual : parseDuration(within);
  if (bound !== null) return bound;
  throw new GatewayError(
    "invalid_argument",
    'within is not a duration. Give milliseconds, or text such as "25s".',
    { param: "within" },
  );
}

function shuttingDown(): GatewayError {
  return new GatewayError("overloaded", "The gateway is shutting down.", {
    headers: { "retry-after": "1" },
  });
}

/** What runs by itself while a gateway is open. */
interface Maintenance {
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

const pageSize = 100;

/**
 * Settles the Steps that no process will settle any more as `interrupted`, and says how many. Any process may run it,
 * and several at once: a Step is settled once.
 */
export async function recoverSteps(context: GatewayContext): Promise<number> {
  let recovered = 0;
  for (;;) {
    const time = { at: context.clock.now(), clock: leaseClockOf(context) };
    const lapsed = await context.store.lapsedSteps({ ...time, limit: pageSize });
    const results = await Promise.all(lapsed.map((step) => recover(context, step)));
    const settled = results.filter(Boolean).length;
    recovered += settled;
    // A page on which nothing could be settled would only come back.
    if (lapsed.length < pageSize || settled === 0) return recovered;
  }
}

async function recover(
  context: GatewayContext,
  { step, outputTokens }: LapsedStep,
): Promise<boolean> {
  const running = step.attempts.at(-1);
  if (!running) return false;
  const settlement = interruption(context, { step, running, outputTokens });
  const { settled } = await context.store.settleStep({
    ...settlement,
    leaf: settledLeaf(context.ids.uuid(), settlement),
  });
  if (settled) {
    context.notify({
      type: "step.settled",
      at: settlement.at,
      organizationId: step.organizationId,
      stepId: step.id,
      outcome: "interrupted",
      reason: settlement.reason,
      ...sumsOf([...step.attempts.flatMap(({ end }) => end ?? []), settlement.attempt]),
      durationMs: settlement.at - step.openedAt,
    });
  }
  return settled;
}

function interruption(
  context: GatewayContext,
  {
    step,
    running,
    outputTokens,
  }: {
    readonly step: LapsedStep["step"];
    readonly running: Attempt;
    readonly outputTokens: number | null;
  },
): Omit<StepSettlement, "leaf"> {
  const at = context.clock.now();
  return {
    organizationId: step.organizationId,
    stepId: step.id,
    at,
    outcome: "interrupted",
    reason: "process_lost",
    finishReason: null,
    attempt: meterInterrupted(running, {
      outputTokens,
      durationMs: Math.max(0, at - running.startedAt),
    }),
    reply: null,
    reasoning: null,
    response: null,
  };
}

const chunk = 100;

/**
 * Removes what is older than it is to be kept, a bounded chunk at a time, and says how much. Any process may run it, and
 * several at once. It ends early once `isStopped` says so. What cannot be removed keeps nothing else: the first failure
 * is thrown at the end.
 */
export async function sweep(
  context: GatewayContext,
  isStopped = (): boolean => false,
): Promise<number> {
  const { store, ids, retention } = context;
  const everyChunk = async (keep: number | null, next: (one: Sweep) => Promise<SweepResult>) => {
    if (keep === null) return 0;
    for (let removed = 0; ; ) {
      const swept = await orUnavailable(next({ at: context.clock.now(), keep, limit: chunk }));
      removed += swept.removed;
      if (!swept.more || isStopped()) return removed;
    }
  };
  return sumOfAll([
    // Each response says itself when it expires.
    () =>
      everyChunk(0, async ({ at, limit }) => {
        const removed = await store.responses.sweep({ at, limit });
        return { removed, more: removed === limit };
      }),
    () =>
      everyChunk(retention.activity, (one) =>
        store.steps.sweep({
          ...one,
          leaf: (removed) => activityRemovedLeaf(ids.uuid(), one, removed),
        }),
      ),
    () =>
      everyChunk(retention.transcripts, (one) => {
        // A store may decide again before it writes: an organization's leaf keeps its id.
        const leafIds = new Map<string, string>();
        return store.sessions.sweep({
          ...one,
          leaf(erased) {
            const id = leafIds.get(erased.organizationId) ?? ids.uuid();
            leafIds.set(erased.organizationId, id);
            return transcriptsErasedLeaf(id, one, erased);
          },
        });
      }),
  ]);
}

/** One after the other, each whatever became of those before. */
async function sumOfAll(parts: readonly (() => Promise<number>)[]): Promise<number> {
  const failures: unknown[] = [];
  let sum = 0;
  for (const part of parts)
    sum += await part().catch((failure: unknown) => {
      failures.push(failure);
      return 0;
    });
  if (failures.length > 0) throw failures[0];
  return sum;
}

/** The store's own, unless the gateway was given a clock to go by. */
export function leaseClockOf({ clock }: Pick<GatewayContext, "clock">): LeaseClock {
  return clock === systemClock ? "store" : "gateway";
}
