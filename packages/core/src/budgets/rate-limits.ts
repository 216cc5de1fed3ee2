import type { RefusedHold } from "../contracts/step-verbs.ts";
import type { BudgetCounter, BudgetCounterKey, Hold } from "../domain/budget.ts";
import type { DecisionRefusal } from "../domain/policy-decision.ts";
import type { RateLimit, RateLimitScope, RatePeriod } from "../domain/rate-limit.ts";
import { GatewayError, waitHeaders } from "../errors/gateway-error.ts";

/** A rate limit as configured. */
export interface RateLimitConfiguration {
  /** Identifies it in errors and records. 1 to 255 visible ASCII characters, unique among rate limits and budgets. */
  readonly id: string;
  readonly scope?: RateLimitScope;
  /** `requests` and `tokens` need `per`; `concurrentSteps` limits how many Steps are in flight at once. */
  readonly limit:
    | { readonly requests: number }
    | { readonly tokens: number }
    | { readonly concurrentSteps: number };
  readonly per?: RatePeriod;
  /**
   * Requests or tokens allowed at once, at least 1. Default: a tenth of the limit. Over any stretch of time as long as the
   * period, at most the limit plus the burst gets through, or plus one request that is larger than the burst.
   */
  readonly burst?: number;
}

/** Converts a validated rate limit, and fills in the default burst. */
export function toRateLimit(configuration: RateLimitConfiguration): RateLimit {
  const { id, scope = {}, limit, per = null } = configuration;
  if ("concurrentSteps" in limit)
    return { id, scope, unit: "steps", limit: limit.concurrentSteps, per: null, burst: 0 };
  const [unit, amount] =
    "requests" in limit
      ? (["requests", limit.requests] as const)
      : (["tokens", limit.tokens] as const);
  const burst = configuration.burst ?? Math.max(1, Math.floor(amount / 10));
  return { id, scope, unit, limit: amount, per, burst };
}

const periodMicroseconds: Readonly<Record<RatePeriod, number>> = {
  second: 1e6,
  minute: 60e6,
  hour: 3_600e6,
  day: 86_400e6,
};

/** A rate limit that applies to a spender, and the subject of the counter it uses. */
export interface RateTemplate {
  readonly rateLimit: RateLimit;
  readonly subject: string;
}

/**
 * The hold that a request takes on a rate limit. A limit per period uses the generic cell rate algorithm (GCRA): its
 * counter, a pace, is the time in microseconds until which the rate is used up. Each request moves that time forward, and
 * fits if the result is no further ahead of now than the burst.
 */
export function rateHold(
  { rateLimit, subject }: RateTemplate,
  estimates: { readonly requests: number; readonly tokens: number },
  at: number,
): Hold {
  const counter = { ...rateCounter(rateLimit, subject), mode: "hard" } as const;
  if (rateLimit.unit === "steps" || rateLimit.per === null)
    return { ...counter, unit: "steps", limit: rateLimit.limit, amount: 1 };
  const unit = rateLimit.unit === "requests" ? "requests_pace" : "tokens_pace";
  if (rateLimit.limit === 0) return { ...counter, unit, limit: 0, amount: 0 };
  const units = estimates[rateLimit.unit];
  const amount = timeOf(rateLimit, units);
  const floor = at * 1_000;
  // A request larger than the burst fits only if nothing is used up. The next ones then wait longer.
  const room = Math.max(burstTime(rateLimit), units > rateLimit.limit ? 0 : amount);
  return { ...counter, unit, limit: floor + room, amount, floor };
}

/**
 * Whether a rate limit that rejected a hold allows it at this later time. While a request waits for its store, later ones
 * can move the counter ahead of its time by more than the burst.
 */
export function fitsAt(refused: RefusedHold, at: number): boolean {
  const { hold } = refused;
  return hold.floor !== undefined && hold.limit > 0 && hold.amount <= leftAt(refused, at);
}

/** The time that a rate limit has left now, if it had `left` when the hold was computed. At most its room. */
function leftAt({ hold, left }: RefusedHold, at: number): number {
  const now = at * 1_000;
  const { limit, floor = now } = hold;
  return Math.min(limit - floor, left + now - floor);
}

/**
 * The key of a rate limit's counter. Rate limits have no periods, so `periodStart` is a negative number that depends on the
 * unit: an id that is reused with another unit starts a new counter.
 */
export function rateCounter({ id, unit }: RateLimit, subject: string): BudgetCounterKey {
  return { budgetId: id, subject, periodStart: unit === "steps" ? -2 : -1 };
}

/** How long a rate limit above 0 takes to allow this many requests or tokens, in whole microseconds. */
function timeOf({ unit, limit, per }: RateLimit, units: number): number {
  const period = periodOf(per);
  // Rounds up per request, so n requests take exactly n times as long as one.
  return unit === "requests"
    ? units * Math.ceil(period / limit)
    : Math.ceil((units * period) / limit);
}

function periodOf(per: RatePeriod | null): number {
  return per === null ? 0 : periodMicroseconds[per];
}

/** About 100 years. Counters of microseconds stay exact with it added. */
const maxBurstTime = 3e15;

function burstTime(rateLimit: RateLimit): number {
  return rateLimit.limit === 0 ? 0 : Math.min(timeOf(rateLimit, rateLimit.burst), maxBurstTime);
}

/** How many requests or tokens a rate limit allows in a time in microseconds: the inverse of `timeOf`. */
function unitsIn(rateLimit: RateLimit, time: number): number {
  const { unit, limit, per } = rateLimit;
  if (limit === 0 || time <= 0) return 0;
  if (unit === "requests") return Math.floor(time / timeOf(rateLimit, 1));
  const units = Math.floor((time / periodOf(per)) * limit);
  // The quotient may be rounded to either side of a whole number.
  return timeOf(rateLimit, units + 1) <= time ? units + 1 : units;
}

/** How much a rate limit has left, and when all of it is available again. */
export interface RateState {
  readonly rateLimit: RateLimit;
  readonly remaining: number;
  /** Milliseconds until the whole burst is available again. */
  readonly resetMs: number;
}

/** The state of a rate limit whose counter has this value. */
export function rateStateAt(rateLimit: RateLimit, usedUntil: number, at: number): RateState {
  const ahead = Math.max(0, usedUntil - at * 1_000);
  const room = Math.max(0, burstTime(rateLimit) - ahead);
  return { rateLimit, remaining: unitsIn(rateLimit, room), resetMs: Math.ceil(ahead / 1_000) };
}

/** The state of a rate limit whose counter is this one. Steps in flight can't be predicted, so they reset at once. */
export function rateStateOf(
  rateLimit: RateLimit,
  { settled, held }: Pick<BudgetCounter, "settled" | "held">,
  at: number,
): RateState {
  if (rateLimit.unit !== "steps") return rateStateAt(rateLimit, settled, at);
  return { rateLimit, remaining: Math.max(0, rateLimit.limit - held), resetMs: 0 };
}

/**
 * The `x-ratelimit-*` headers that SDKs read: three for requests and three for tokens. Of several rate limits in the same
 * unit, they show the one with the least left. Names and durations follow OpenAI's API.
 */
export function rateHeaders(states: readonly RateState[]): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const unit of ["requests", "tokens"] as const) {
    let tightest: RateState | null = null;
    for (const state of states)
      if (state.rateLimit.unit === unit && (!tightest || state.remaining < tightest.remaining))
        tightest = state;
    if (!tightest) continue;
    headers[`x-ratelimit-limit-${unit}`] = String(tightest.rateLimit.limit);
    headers[`x-ratelimit-remaining-${unit}`] = String(tightest.remaining);
    headers[`x-ratelimit-reset-${unit}`] = durationText(tightest.resetMs);
  }
  return headers;
}

/** `850ms`, `1.2s`, `6m0s` or `1h2m3s`. */
function durationText(ms: number): string {
  if (ms < 1_000) return `${ms}ms`;
  if (ms < 60_000) return `${Math.ceil(ms / 100) / 10}s`;
  const seconds = Math.ceil(ms / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60)];
  return `${hours > 0 ? `${hours}h` : ""}${minutes}m${seconds % 60}s`;
}

/** A rate limit's refusal as the decision records it, in requests, tokens or Steps. */
export function refusedByRate(
  rateLimit: RateLimit,
  { hold, left }: RefusedHold,
): Extract<DecisionRefusal, { by: "rate_limit" }> {
  const { unit } = rateLimit;
  const [needed, remaining] =
    unit === "steps"
      ? [hold.amount, left]
      : [unitsIn(rateLimit, hold.amount), unitsIn(rateLimit, left)];
  const { subject } = hold;
  return { by: "rate_limit", rateLimitId: rateLimit.id, subject, unit, needed, left: remaining };
}

/** How long to ask a client to wait for a Step in flight to end, which can't be predicted. */
const stepWaitMs = 1_000;

/** The error names the rate limit and when to try again. It doesn't show how much other callers use. */
export function rateLimitExceeded(
  rateLimit: RateLimit,
  refused: RefusedHold,
  at: number,
): GatewayError {
  const { hold, left } = refused;
  const name = `The rate limit ${rateLimit.id}`;
  if (hold.limit === 0) return exceeded(`${name} allows no requests.`, {});
  if (hold.unit === "steps") {
    const wait = waitHeaders(stepWaitMs);
    return exceeded(`${name} is reached: too many requests are in flight. Try again soon.`, wait);
  }
  const { needed } = refusedByRate(rateLimit, refused);
  if (needed > rateLimit.limit && hold.amount > burstTime(rateLimit))
    return exceeded(
      `${name} allows ${rateLimit.limit} tokens per ${rateLimit.per}, fewer than this request may use. Lower max_tokens or shorten the request.`,
      {},
    );
  const waitMs = Math.max(1, Math.ceil((hold.amount - leftAt(refused, at)) / 1_000));
  const state = rateStateAt(rateLimit, hold.limit - left, at);
  return exceeded(`${name} is reached. Try again in ${durationText(waitMs)}.`, {
    ...waitHeaders(waitMs),
    ...rateHeaders([state]),
  });
}

function exceeded(message: string, headers: Readonly<Record<string, string>>): GatewayError {
  return new GatewayError("rate_limit_exceeded", message, { headers });
}
