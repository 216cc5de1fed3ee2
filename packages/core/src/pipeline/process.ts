import { meterInterrupted } from "../attempts/meter-attempt.ts";
import type { MaintenanceTask } from "../contracts/observer.ts";
import type { Sweep, SweepResult } from "../contracts/retention.ts";
import type { LapsedStep, LeaseClock, StepSettlement } from "../contracts/step-verbs.ts";
import { formatModelId } from "../domain/model-id.ts";
import type { Attempt } from "../domain/step.ts";
import { sumsOf } from "../domain/step-sums.ts";
import { GatewayError, invalidArgument } from "../errors/gateway-error.ts";
import {
  activityRemovedLeaf,
  createLeaf,
  settledLeaf,
  transcriptsErasedLeaf,
} from "../evidence/leaves.ts";
import { claimExpiry } from "../idempotency/claim.ts";
import type { LastUsed } from "../identity/last-used.ts";
import { type Clock, systemClock } from "../kernel/clock.ts";
import { type Duration, parseDuration } from "../kernel/duration.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "./context.ts";
import { foldableUntil, foldSteps } from "./fold-steps.ts";
import { orUnavailable } from "./store-calls.ts";

/** A gateway's life in its process, from its first use to its end. */
export interface Lifecycle {
  /**
   * Opens the store, migrates it and takes the lease, once. After a failure, the next call tries again.
   * @throws GatewayError `overloaded` if the gateway closes before it was opened
   */
  opened(): Promise<void>;
  /** Like `opened`, and records a change of policy, because the gateway is about to serve requests. */
  ready(): Promise<void>;
  /** Like `ready`, for admitted requests; null once the store is open. */
  open(): Promise<void> | null;
  /**
   * Admits a request. Closing waits until it leaves.
   * @throws GatewayError `overloaded` if the gateway is closing
   */
  enter(): void;
  leave(): void;
  /** Whether `close` was called. */
  isClosing(): boolean;
  /**
   * Admits no more requests, waits for the running ones, ends the rest, and closes everything the gateway opened. Another
   * call can only make it end sooner.
   * @throws GatewayError `invalid_argument` if `within` isn't a duration
   */
  close(options?: CloseOptions): Promise<void>;
}

/** Options for closing a gateway. */
export interface CloseOptions {
  /**
   * How long closing may take in total. Default `deadlines.close` (25 s). When a fifth of it is left, but at most five
   * seconds, running answers end with an error.
   */
  readonly within?: Duration;
}

/** The share of the time, and its maximum, for settling ended Steps, answering them and closing the store. */
const endingShare = 1 / 5;
const maxEndingMs = 5_000;

interface Parts {
  readonly maintenance: Maintenance;
  readonly lastUsed: LastUsed;
}

export function createLifecycle(context: GatewayContext, parts: Parts): Lifecycle {
  const opening = createOpening(async () => {
    await context.store.migrate();
    await context.budgets.reload();
    await parts.maintenance.start();
    context.sequencer?.start();
  });
  // Administration alone decides nothing, and often runs without the policy of the gateway that serves requests.
  const serving = createOpening(async () => {
    await opening.open();
    await notePolicy(context);
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
    await Promise.all([opening.ended(), serving.ended()]);
    await parts.maintenance.stop();
    await context.sequencer?.stop();
    await parts.lastUsed.close();
    await Promise.all([...context.providers.values()].map((provider) => provider.close()));
    await context.store.close();
  }

  return {
    async opened() {
      if (closing && !opening.hasBegun()) throw shuttingDown();
      await opening.open();
    },
    async ready() {
      if (closing && !serving.hasBegun()) throw shuttingDown();
      await serving.open();
    },
    open: serving.open,
    enter() {
      if (closing) throw shuttingDown();
      requests.begin();
    },
    leave: requests.end,
    isClosing: () => closing !== null,
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

/** Records a change of policy, once. It belongs to no organization and has no actor. */
async function notePolicy({ store, policy, ids, clock, notify }: GatewayContext): Promise<void> {
  const { version } = policy;
  const head = { id: ids.uuid(), organizationId: "", kind: "policy.changed" } as const;
  const at = clock.now();
  let isChange = false;
  await store.evidence.notePolicy({
    version,
    leaf(before) {
      isChange = true;
      return createLeaf({ ...head, at }, { actor: null, before, policy: version });
    },
  });
  if (!isChange) return;
  const { kind } = head;
  notify({ type: "administered", at, kind, organizationId: null, subject: version, actor: null });
}

/** Opens once. After a failure, the next call tries again. */
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

/** Counts the running requests. */
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
    /** Resolves once no request runs. Call it after the last one was admitted. */
    ended(): Promise<void> {
      isAwaited = true;
      if (running === 0) ended.resolve();
      return ended.promise;
    },
  };
}

/** A deadline that can only be moved forward. */
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
  throw invalidArgument(
    "within",
    'within must be a duration: milliseconds, or text such as "25s".',
  );
}

function shuttingDown(): GatewayError {
  return new GatewayError("overloaded", "The gateway is shutting down.", {
    headers: { "retry-after": "1" },
  });
}

/** Recurring work while a gateway is open. */
export interface Maintenance {
  /** Takes the process's lease. No Step may open before. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Milliseconds since the lease was last renewed. */
  leaseAge(): number;
}

const renewalIntervalMs = 5_000;
const leaseMs = 15_000;
/** Another process may have renewed one round earlier than this one, so its lease could lapse after a longer gap. */
const maxRenewalGapMs = leaseMs - renewalIntervalMs;
/** A sweep every minute. */
const roundsPerSweep = 12;

/** Renews the process's lease and recovers the Steps of lost processes. Rounds don't overlap. */
export function createMaintenance(
  context: GatewayContext,
  { recovers }: { readonly recovers: boolean },
): Maintenance {
  let cancel = (): void => {};
  let round: Promise<void> = Promise.resolve();
  let recovering: Promise<void> | null = null;
  let sweeping: Promise<void> | null = null;
  let isStopped = false;
  let mayRecover = false;
  let rounds = 0;
  let renewed = timesOf(context);
  const runTask = createTasks(context);

  function schedule(): void {
    if (isStopped) return;
    const begin = (): void => {
      round = runRound().then(schedule);
    };
    // A background timer: an open Step's own deadline keeps the process alive.
    cancel = context.clock.after(renewalIntervalMs, begin, { background: true });
  }

  async function runRound(): Promise<void> {
    const at = timesOf(context);
    const isRenewed = await runTask("lease", () => renew(context));
    mayRecover = isRenewed && !isLate(renewed, at);
    if (isRenewed) renewed = at;
    if (!recovers) return;
    // They run on their own: a long recovery or sweep must not delay the next renewal.
    if (mayRecover) recovering ??= recoverOnce();
    if (++rounds % roundsPerSweep === 0) sweeping ??= sweepOnce();
  }

  async function recoverOnce(): Promise<void> {
    // This process may be suspended, or lose its lease, while it recovers.
    const mustStop = () => isStopped || !mayRecover || isLate(renewed, timesOf(context));
    await runTask("recovery", () => recoverSteps(context, mustStop));
    recovering = null;
  }

  async function sweepOnce(): Promise<void> {
    await runTask("rollup", () => rollUp(context, () => isStopped));
    await runTask("sweep", () => sweep(context, () => isStopped));
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
      await recovering;
      await sweeping;
    },
    leaseAge: () => ageOf(renewed, timesOf(context)),
  };
}

async function renew(context: GatewayContext): Promise<void> {
  const { processId } = context.openSteps;
  const at = context.clock.now();
  const { renewal, steps } = context.openSteps.nextRenewal();
  const time = { at, until: at + leaseMs, clock: leaseClockOf(context) };
  await context.store.renewLease({ processId, renewal, ...time, steps });
}

/** Runs tasks. Observers learn of a failure and of its end, and the next round tries again. */
function createTasks({ clock, notify }: GatewayContext) {
  const failing = new Set<string>();
  return async (what: "lease" | MaintenanceTask, run: () => Promise<unknown>): Promise<boolean> => {
    try {
      await run();
      if (failing.delete(what)) notify({ type: "gateway.restored", at: clock.now(), what });
      return true;
    } catch {
      failing.add(what);
      notify({ type: "gateway.degraded", at: clock.now(), what });
      return false;
    }
  };
}

/** Runs a kind of maintenance that returns how many records it affected, and reports that to observers. */
async function reported(
  { clock, notify }: GatewayContext,
  what: MaintenanceTask,
  run: () => Promise<number>,
): Promise<number> {
  const startedAt = clock.monotonic();
  const count = await run();
  const durationMs = Math.round(clock.monotonic() - startedAt);
  notify({ type: "maintenance.ran", at: clock.now(), what, count, durationMs });
  return count;
}

interface Times {
  readonly wall: number;
  readonly monotonic: number;
}

function timesOf({ clock }: GatewayContext): Times {
  return { wall: clock.now(), monotonic: clock.monotonic() };
}

/**
 * Whether this process missed a renewal because it was suspended or its store did not answer. Other processes probably
 * missed theirs too and are about to renew, so this one waits one more round before it recovers their Steps. It compares
 * both clocks: monotonic time stops during suspension, and wall time can be set back.
 */
function isLate(last: Times, now: Times): boolean {
  return ageOf(last, now) > maxRenewalGapMs;
}

function ageOf(last: Times, now: Times): number {
  return Math.max(now.wall - last.wall, now.monotonic - last.monotonic);
}

const pageSize = 100;

/**
 * Settles the Steps of lost processes as `interrupted` and returns their number. Several processes may run it at once: each
 * Step is settled once. Stops early if `isStopped` returns true.
 */
export function recoverSteps(
  context: GatewayContext,
  isStopped = (): boolean => false,
): Promise<number> {
  return reported(context, "recovery", () => recoverAll(context, isStopped));
}

/** A Step that can't be settled must not keep the others open. The first failure is thrown at the end. */
async function recoverAll(context: GatewayContext, isStopped: () => boolean): Promise<number> {
  let recovered = 0;
  let failure: unknown = null;
  for (let after: number | null = null; ; ) {
    const time = { at: context.clock.now(), clock: leaseClockOf(context) };
    const page = await context.store.lapsedSteps({ ...time, after, limit: pageSize });
    if (isStopped()) break;
    const results = await Promise.all(
      page.steps.map((step) =>
        recover(context, step).catch((thrown: unknown) => {
          failure ??= thrown;
          return false;
        }),
      ),
    );
    recovered += results.filter(Boolean).length;
    failure ??= page.damaged[0] ?? null;
    after = page.next;
    if (after === null) break;
    await yieldToEventLoop();
  }
  if (failure !== null) throw failure;
  return recovered;
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
      requestId: null,
      organizationId: step.organizationId,
      keyId: step.keyId,
      stepId: step.id,
      outcome: "interrupted",
      reason: settlement.reason,
      ...sumsOf([...step.attempts.flatMap(({ end }) => end ?? []), settlement.attempt]),
      attempts: step.attempts.length,
      model: formatModelId(running),
      finishReason: null,
      durationMs: settlement.at - step.openedAt,
      writeMs: null,
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
    claim:
      step.idempotencyKeySha256 === null
        ? null
        : { state: "interrupted", expiresAt: claimExpiry(at) },
  };
}

/** Folds the Steps of past hours into sums, and returns their number. */
export function rollUp(context: GatewayContext, isStopped = (): boolean => false): Promise<number> {
  return reported(context, "rollup", async () => {
    const until = foldableUntil(context.clock.now());
    const { count, failure } = await orUnavailable(foldSteps(context, { until, isStopped }));
    if (failure !== null) throw failure;
    return count;
  });
}

const chunk = 100;
/** Fewer, because each Session may have a long transcript. */
const transcriptsPerChunk = 20;

/**
 * Removes expired records in bounded chunks and returns their number. Several processes may run it at once. Stops early if
 * `isStopped` returns true. A failure of one kind of record does not affect the others; the first failure is thrown at the
 * end.
 */
export function sweep(context: GatewayContext, isStopped = (): boolean => false): Promise<number> {
  return reported(context, "sweep", () => sweepAll(context, isStopped));
}

async function sweepAll(context: GatewayContext, isStopped: () => boolean): Promise<number> {
  const { store, ids, retention } = context;
  const sweepInChunks = async (
    keep: number | null,
    next: (request: Sweep) => Promise<SweepResult>,
  ) => {
    if (keep === null) return 0;
    for (let [removed, from] = [0, ""]; ; ) {
      const request = { from, at: context.clock.now(), keep, limit: chunk };
      const swept = await orUnavailable(next(request));
      removed += swept.removed;
      if (swept.next === null || isStopped()) return removed;
      from = swept.next;
      // A store may answer without a turn of the event loop.
      await yieldToEventLoop();
    }
  };
  return sumOfAll([
    // Each response stores its own expiry.
    () =>
      sweepInChunks(0, async ({ at, limit }) => {
        const removed = await store.responses.sweep({ at, limit });
        // A removal may have made earlier responses of its chain due.
        return { removed, next: removed > 0 ? "" : null };
      }),
    async () => {
      if (retention.activity === null) return 0;
      // The sums of removed Steps stay, so no Step is removed before it is folded.
      const until = context.clock.now() - retention.activity;
      const folding = foldSteps(context, { until, isStopped });
      const { unfolded, failure } = await orUnavailable(folding);
      if (isStopped()) return 0;
      const removed = await sweepInChunks(retention.activity, (sweep) => {
        const request = { ...sweep, keep: Math.max(sweep.keep, sweep.at - until) };
        return store.steps.sweep({
          ...request,
          unfolded,
          leaf: (removed) => activityRemovedLeaf(ids.uuid(), request, removed),
        });
      });
      if (failure !== null) throw failure;
      return removed;
    },
    () =>
      sweepInChunks(retention.transcripts, (sweep) => {
        const request = { ...sweep, limit: transcriptsPerChunk };
        // A store may decide again before it writes, so each organization's leaf keeps its id.
        const leafIds = new Map<string, string>();
        return store.sessions.sweep({
          ...request,
          leaf(erased) {
            const id = leafIds.get(erased.organizationId) ?? ids.uuid();
            leafIds.set(erased.organizationId, id);
            return transcriptsErasedLeaf(id, request, erased);
          },
        });
      }),
  ]);
}

/** Runs all parts in turn, even if some fail. */
async function sumOfAll(parts: readonly (() => Promise<number>)[]): Promise<number> {
  let failure: unknown = null;
  let sum = 0;
  for (const part of parts)
    sum += await part().catch((thrown: unknown) => {
      failure ??= thrown;
      return 0;
    });
  if (failure !== null) throw failure;
  return sum;
}

/** The store's own clock, unless the gateway was given one. */
export function leaseClockOf({ clock }: Pick<GatewayContext, "clock">): LeaseClock {
  return clock === systemClock ? "store" : "gateway";
}
