import {
  type BreakerChange,
  type BreakerRules,
  CallDeclined,
  CircuitBreaker,
  defaultBreakerRules,
} from "../attempts/circuit-breaker.ts";
import type { GatewayEvent } from "../contracts/observer.ts";
import { formatModelId } from "../domain/model-id.ts";
import type { Clock } from "../kernel/clock.ts";
import { type Duration, parseDuration } from "../kernel/duration.ts";
import type { ModelRoute } from "../routing/route.ts";

/** When a model's circuit breaker opens, and for how long. */
export interface BreakerConfiguration {
  /** The minimum number of failed attempts within `window`. Default 10. */
  readonly failures?: number;
  /** The minimum share of the attempts within `window` that must have failed, above 0 and up to 1. Default 0.5. */
  readonly ratio?: number;
  /** How far back attempts count. Default `"30s"`. */
  readonly window?: Duration;
  /** How long the breaker stays open before a probe. Default `"30s"`. */
  readonly pause?: Duration;
}

/** Limits on the calls to the upstream of one gateway, in each process. */
export interface UpstreamConfiguration {
  /** Attempts in flight at once. Default: no limit. */
  readonly concurrency?: number;
  /**
   * Attempts that may wait for a place; needs `concurrency`. Beyond that, attempts of the API key with the most waiting
   * are declined. Default 100.
   */
  readonly queue?: number;
  /** How long an attempt waits for a place before it is declined; needs `concurrency`. Default `"10s"`. */
  readonly queueWait?: Duration;
  /** A circuit breaker for each model; `{}` for one with the defaults. Default: none. */
  readonly breaker?: BreakerConfiguration;
}

/** How the upstream of a gateway is protected. Times are in milliseconds. */
interface UpstreamRules {
  /** Attempts in flight at once. Infinity for no limit. */
  readonly concurrency: number;
  /** Attempts that wait for a place. */
  readonly queue: number;
  /** How long an attempt waits for a place. */
  readonly queueWait: number;
  /** Null for no breaker. */
  readonly breaker: BreakerRules | null;
}

/** How an attempt ended: an answer of any kind, the provider's fault, or neither, because it was stopped. */
type TurnOutcome = "answered" | "fault" | "stopped";

/** An attempt that asks for a place. One of the methods is called, once, unless its turn ends first. */
interface Applicant {
  /** It has a place and may ask the provider. */
  admitted(): void;
  declined(reason: CallDeclined): void;
}

const maxBreakers = 1_000;

/** A model as one account reaches it. */
export interface ModelAccount {
  /** The full id. */
  readonly model: string;
  /** The organization that owns the account; null for the platform's. */
  readonly organizationId: string | null;
  readonly name: string;
}

/** The account with which an organization calls a model. Its own account says nothing about those of others. */
export function accountOf(
  { model, connection }: Pick<ModelRoute, "model" | "connection">,
  organizationId: string,
): ModelAccount {
  const id = formatModelId(model);
  if (connection === "platform") return { model: id, organizationId: null, name: id };
  return { model: id, organizationId, name: JSON.stringify([organizationId, id]) };
}

/**
 * The upstream of a gateway: its places, a line for each API key, and the breakers of its models. A breaker is for all callers,
 * or for one organization if each brings its own account. Each process has its own upstreams.
 */
export class Upstream {
  readonly rules: UpstreamRules;
  readonly #clock: Clock;
  readonly #notify: (event: GatewayEvent) => void;
  /** By the names of accounts. Only models that failed lately have one. */
  readonly #breakers = new Map<string, CircuitBreaker>();
  /** By API key, in the order in which the keys get the next places. */
  readonly #lines = new Map<string, Set<Turn>>();
  #waiting = 0;
  #taken = 0;
  #isAdmitting = false;

  constructor(rules: UpstreamRules, clock: Clock, notify: (event: GatewayEvent) => void) {
    this.rules = rules;
    this.#clock = clock;
    this.#notify = notify;
  }

  /** Whether the breaker of a model declines calls of an organization now. */
  declines(route: ModelRoute, organizationId: string): boolean {
    return this.#breakers.size > 0 && this.declinesFor(accountOf(route, organizationId)) > 0;
  }

  /** How long the breaker of an account declines calls, in milliseconds; 0 if it lets the next one through. */
  declinesFor({ name }: ModelAccount): number {
    return this.#breakers.get(name)?.declinesFor(this.#clock.monotonic()) ?? 0;
  }

  /** Lets a call through. Returns whether its end decides on an open breaker. */
  letThrough({ name }: ModelAccount): boolean {
    return this.#breakers.get(name)?.enter() ?? false;
  }

  /** Gives the turn a place at once or one in the line of its key, or declines it. */
  enter(turn: Turn): void {
    if (this.#taken < this.rules.concurrency && this.#waiting === 0) {
      this.#taken++;
      turn.begin();
    } else if (this.#waiting < this.rules.queue || this.#makesRoomFor(turn)) this.#join(turn);
    else turn.decline(noPlace("queue_full"));
  }

  #join(turn: Turn): void {
    const line = this.#lines.get(turn.keyId) ?? new Set();
    this.#lines.set(turn.keyId, line.add(turn));
    this.#waiting++;
  }

  /** Declines the oldest turn of the longest line. Does nothing and returns false if the new turn would make its own the longest. */
  #makesRoomFor({ keyId }: Turn): boolean {
    let longest: ReadonlySet<Turn> | null = null;
    let length = (this.#lines.get(keyId)?.size ?? 0) + 1;
    for (const line of this.#lines.values())
      if (line.size > length) {
        longest = line;
        length = line.size;
      }
    const [oldest] = longest ?? [];
    if (oldest === undefined) return false;
    this.leaveLine(oldest);
    oldest.decline(noPlace("queue_full"));
    return true;
  }

  /** Does nothing if the turn isn't in a line. */
  leaveLine(turn: Turn): void {
    const line = this.#lines.get(turn.keyId);
    if (line === undefined || !line.delete(turn)) return;
    this.#waiting--;
    if (line.size === 0) this.#lines.delete(turn.keyId);
  }

  /** Frees a place for the next in line, a moment later: when the gateway closes, that one ends now, too. */
  free(): void {
    this.#taken--;
    if (this.#isAdmitting || this.#waiting === 0) return;
    this.#isAdmitting = true;
    queueMicrotask(() => this.#admit());
  }

  #admit(): void {
    this.#isAdmitting = false;
    for (const [keyId, line] of this.#lines) {
      if (this.#taken >= this.rules.concurrency) return;
      this.#lines.delete(keyId);
      // The key's next attempt waits until every other key had its turn. This loop gets to it again at its end.
      this.#lines.set(keyId, line);
      const [turn] = line;
      if (turn === undefined) continue;
      this.leaveLine(turn);
      this.#taken++;
      turn.begin();
    }
  }

  /** Counts a call that ended, or a probe that is being answered. */
  count(account: ModelAccount, outcome: TurnOutcome, isProbe: boolean): void {
    const { breaker: rules } = this.rules;
    if (rules === null) return;
    const now = this.#clock.monotonic();
    const known = this.#breakers.get(account.name);
    if (outcome === "fault") (known ?? this.#addBreaker(account, rules)).failed(now, isProbe);
    else if (outcome === "answered" && isProbe) known?.recovered();
    else if (outcome === "answered") known?.answered(now);
    else if (isProbe) known?.inconclusive();
  }

  #addBreaker(account: ModelAccount, rules: BreakerRules): CircuitBreaker {
    if (this.#breakers.size === maxBreakers) this.#dropBreaker();
    const breaker = new CircuitBreaker(rules, (change) => this.#changed(account, change));
    this.#breakers.set(account.name, breaker);
    return breaker;
  }

  /** Makes room for another breaker: the oldest that is closed goes first. */
  #dropBreaker(): void {
    const all = [...this.#breakers];
    const [name] = all.find(([, { isClosed }]) => isClosed) ?? all[0] ?? [];
    if (name !== undefined) this.#breakers.delete(name);
  }

  #changed({ name, model, organizationId }: ModelAccount, change: BreakerChange): void {
    if (change === "closed") this.#breakers.delete(name);
    this.#notify({ type: `breaker.${change}`, at: this.#clock.now(), model, organizationId });
  }
}

/** The upstreams with limits or a breaker; null if none is configured. */
export function createUpstreams(
  configured: Readonly<Record<string, UpstreamConfiguration | undefined>>,
  clock: Clock,
  notify: (event: GatewayEvent) => void,
): ReadonlyMap<string, Upstream> | null {
  const upstreams = new Map<string, Upstream>();
  for (const [gateway, one] of Object.entries(configured))
    if (one) upstreams.set(gateway, new Upstream(rulesOf(one), clock, notify));
  return upstreams.size === 0 ? null : upstreams;
}

function rulesOf(configured: UpstreamConfiguration): UpstreamRules {
  const { concurrency = Number.POSITIVE_INFINITY, queue = 100, breaker } = configured;
  const { queueWait = 10_000 } = configured;
  return {
    concurrency,
    queue,
    queueWait: parseDuration(queueWait) ?? 0,
    breaker: breaker === undefined ? null : breakerRulesOf(breaker),
  };
}

function breakerRulesOf({ window, pause, ...counts }: BreakerConfiguration): BreakerRules {
  const { window: usualWindow, pause: usualPause } = defaultBreakerRules;
  return {
    ...defaultBreakerRules,
    ...counts,
    window: parseDuration(window ?? usualWindow) ?? usualWindow,
    pause: parseDuration(pause ?? usualPause) ?? usualPause,
  };
}

/** An attempt's turn at its upstream, from asking for a place to its end. */
export class Turn {
  /** The API key that it waits for. */
  readonly keyId: string;
  readonly #upstream: Upstream;
  readonly #account: ModelAccount;
  readonly #applicant: Applicant;
  #state: "waiting" | "running" | "over" = "waiting";
  #isProbe = false;

  constructor(
    upstream: Upstream,
    { account, keyId }: { readonly account: ModelAccount; readonly keyId: string },
    applicant: Applicant,
  ) {
    this.keyId = keyId;
    this.#upstream = upstream;
    this.#account = account;
    this.#applicant = applicant;
  }

  /** True until it has a place, is declined or ends. */
  get isWaiting(): boolean {
    return this.#state === "waiting";
  }

  /** Asks for a place. The applicant may be admitted or declined before this returns. */
  start(): void {
    const wait = this.#upstream.declinesFor(this.#account);
    if (wait > 0) this.decline(breakerOpen(wait));
    else this.#upstream.enter(this);
  }

  /** It has a place. In the meantime, the breaker may have opened. */
  begin(): void {
    this.#state = "running";
    const wait = this.#upstream.declinesFor(this.#account);
    if (wait > 0) this.decline(breakerOpen(wait));
    else {
      this.#isProbe = this.#upstream.letThrough(this.#account);
      this.#applicant.admitted();
    }
  }

  /** The applicant then ends this turn. */
  decline(reason: CallDeclined): void {
    this.#applicant.declined(reason);
  }

  /** The provider has begun its answer. A breaker doesn't wait for the end of a long one. */
  heard(): void {
    if (!this.#isProbe) return;
    this.#isProbe = false;
    this.#upstream.count(this.#account, "answered", true);
  }

  /** Ends the turn, and frees its place or leaves the line. */
  end(outcome: TurnOutcome): void {
    const state = this.#state;
    this.#state = "over";
    if (state === "waiting") this.#upstream.leaveLine(this);
    if (state !== "running") return;
    this.#upstream.count(this.#account, outcome, this.#isProbe);
    this.#upstream.free();
  }
}

/** How soon to try again when other calls take all places. Calls end at any moment, so this is a guess. */
const retryAfterMs = 1_000;

/** The call found no place in the queue, or waited too long. */
export function noPlace(reason: "queue_full" | "queue_timeout"): CallDeclined {
  const message = "Too many calls are waiting for this gateway. Try again later.";
  return new CallDeclined(reason, message, retryAfterMs);
}

function breakerOpen(wait: number): CallDeclined {
  const message = "The provider keeps failing, so Tollgate isn't calling it. Try again later.";
  return new CallDeclined("breaker_open", message, wait);
}
