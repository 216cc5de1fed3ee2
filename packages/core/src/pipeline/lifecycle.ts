import { GatewayError } from "../errors/gateway-error.ts";
import { createLeaf } from "../evidence/leaves.ts";
import type { LastUsed } from "../identity/last-used.ts";
import type { Clock } from "../kernel/clock.ts";
import { type Duration, parseDuration } from "../kernel/duration.ts";
import type { GatewayContext } from "./context.ts";
import type { Maintenance } from "./maintenance.ts";

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
