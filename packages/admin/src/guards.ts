import { type Clock, GatewayError, type GatewayRequest } from "@tollgate/core";
import type { AdminGrant } from "./grant.ts";
import type { Route } from "./operation.ts";

/**
 * Refuses a change that another site sends with a browser's own credentials. A browser says where a request comes from; a
 * request without that must carry an `Authorization` header, which no other site can add.
 * @throws GatewayError `cross_origin_refused`
 */
export function requireSameOrigin({ method, headers, url }: GatewayRequest): void {
  if (method === "GET") return;
  const site = headers.get("sec-fetch-site");
  if (site === "same-origin" || site === "none") return;
  const origin = headers.get("origin");
  const isBrowser = site !== null || origin !== null;
  if (!isBrowser && headers.get("authorization") !== null) return;
  if (site === null && origin !== null && hostOf(origin) === (headers.get("host") ?? hostOf(url)))
    return;
  const message = isBrowser
    ? "Another site sent this request: send changes from the admin API's own origin."
    : "Changes need an Authorization header, or a browser on the admin API's own origin.";
  throw new GatewayError("cross_origin_refused", message);
}

function hostOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).host : null;
}

const maxFailures = 10;
const failureWindowMs = 60_000;
const maxAddresses = 10_000;

/** Bounds what failed sign-ins from one address cost. */
export interface SignInGuard {
  /**
   * Signs in. After 10 failures within a minute, requests from an address sign in one at a time. Its failures then cost
   * little, and callers who share the address aren't locked out. Attempts under way count as failed: beyond 10, attempts wait
   * until others have ended.
   * @throws GatewayError `overloaded` for an attempt that made room for another request
   * @throws GatewayError `rate_limit_exceeded` in place of `admin_unauthenticated` after 10 failures within a minute
   */
  signIn<Grant>(address: string | null, ask: () => Promise<Grant>): Promise<Grant>;
  /**
   * Makes room for another request. At the address with the most waiting attempts, the newest one gets `overloaded`. Returns
   * false if none waits.
   */
  makeRoom(): boolean;
}

/** The attempts of one address. */
interface Attempts {
  failed: number;
  since: number;
  underWay: number;
  /** Attempts that wait until others have ended. The limit on open requests bounds them. */
  readonly waiting: PromiseWithResolvers<void>[];
}

/** Attempts without a known address aren't counted, because they could come from any number of callers. */
export function createSignInGuard(clock: Clock): SignInGuard {
  const byAddress = new Map<string, Attempts>();
  const renew = (attempts: Attempts): void => {
    const now = clock.monotonic();
    if (now - attempts.since < failureWindowMs) return;
    Object.assign(attempts, { failed: 0, since: now });
  };
  /** Keeps what counts, and forgets the oldest address if there are too many. */
  const keep = (address: string, attempts: Attempts): void => {
    byAddress.delete(address);
    if (attempts.failed + attempts.underWay + attempts.waiting.length === 0) return;
    byAddress.set(address, attempts);
    const [oldest] = byAddress.keys();
    if (byAddress.size > maxAddresses && oldest !== undefined) byAddress.delete(oldest);
  };
  const begin = async (address: string): Promise<Attempts> => {
    const since = clock.monotonic();
    const attempts = byAddress.get(address) ?? { failed: 0, since, underWay: 0, waiting: [] };
    for (;;) {
      renew(attempts);
      if (attempts.underWay < Math.max(1, maxFailures - attempts.failed)) break;
      const turn = Promise.withResolvers<void>();
      attempts.waiting.push(turn);
      await turn.promise;
    }
    attempts.underWay++;
    keep(address, attempts);
    return attempts;
  };
  return {
    async signIn(address, ask) {
      if (address === null) return ask();
      const attempts = await begin(address);
      try {
        return await ask();
      } catch (thrown) {
        renew(attempts);
        if (!(thrown instanceof GatewayError && thrown.code === "admin_unauthenticated"))
          throw thrown;
        if (attempts.failed >= maxFailures) throw tooMany(attempts, clock.monotonic());
        attempts.failed++;
        throw thrown;
      } finally {
        attempts.underWay--;
        for (const next of attempts.waiting.splice(0)) next.resolve();
        keep(address, attempts);
      }
    },
    makeRoom() {
      let longest: Attempts["waiting"] = [];
      for (const { waiting } of byAddress.values())
        if (waiting.length > longest.length) longest = waiting;
      const last = longest.pop();
      last?.reject(overloaded(busy));
      return last !== undefined;
    },
  };
}

/** The message for a request that finds no room. */
export const busy = "The admin API is busy or closing: try again.";

function tooMany({ since }: Attempts, now: number): GatewayError {
  const waitMs = failureWindowMs - (now - since);
  return new GatewayError("rate_limit_exceeded", "Too many failed sign-ins: try again later.", {
    headers: { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1_000))) },
  });
}

const maxReads = 8;
/** A slot whose answer nobody takes, or whose operation hangs, is free again after this time. */
const maxSlotMs = 900_000;

/** Limits the reads and maintenance operations that run at once, so that they can't fill the process. */
export interface Slots {
  /** Refuses a read beyond the bound before anything is read for it, even its sign-in. @throws GatewayError `overloaded` */
  requireFree(route: Route): void;
  /** Takes a slot, and returns a function that frees it. @throws GatewayError `overloaded` */
  take(route: Route, grant: AdminGrant): () => void;
  /** Whether a read holds a slot. An export holds one until it ends. */
  isReading(): boolean;
}

/**
 * At most eight reads, one summary, series or export of each operator, and one maintenance operation. A slot is held at most
 * 15 minutes: then an operation that hangs no longer blocks the others, which can run next to it. Calls `onRelease` whenever a
 * slot is freed.
 */
export function createSlots(clock: Clock, onRelease: () => void): Slots {
  let reads = 0;
  const busy = new Set<string>();
  /** When the maintenance operation that holds the slot began. Monotonic. */
  let maintainedSince: number | null = null;
  const requireFree = ({ method }: Route): void => {
    if (method === "GET" && reads >= maxReads)
      throw overloaded("The admin API is busy reading: try again.");
  };
  /** Calls `free` once: when the slot is released, or after its time. */
  const hold = (free: () => void): (() => void) => {
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      cancel();
      free();
      onRelease();
    };
    const cancel = clock.after(maxSlotMs, release, { background: true });
    return release;
  };
  const takeMaintenance = () => {
    if (maintainedSince !== null) {
      const leftMs = maintainedSince + maxSlotMs - clock.monotonic();
      throw overloaded(
        `Another maintenance operation is running: try again when it ends, or in ${Math.max(1, Math.ceil(leftMs / 1_000))} seconds at the latest.`,
      );
    }
    maintainedSince = clock.monotonic();
    return hold(() => {
      maintainedSince = null;
    });
  };
  const take: Slots["take"] = (route, { actor }) => {
    if (route.isMaintenance) return takeMaintenance();
    if (route.method !== "GET") return () => {};
    requireFree(route);
    if (route.isHeavy && busy.has(actor))
      throw overloaded(
        "Another summary, series or export of yours is running: wait until it ends.",
      );
    reads++;
    if (route.isHeavy) busy.add(actor);
    return hold(() => {
      reads--;
      if (route.isHeavy) busy.delete(actor);
    });
  };
  return { requireFree, take, isReading: () => reads > 0 };
}

export function overloaded(message: string): GatewayError {
  return new GatewayError("overloaded", message, { headers: { "retry-after": "1" } });
}
