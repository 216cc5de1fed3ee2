import type { RefusedHold } from "../contracts/step-verbs.ts";
import type { BudgetCounterKey, Hold } from "../domain/budget.ts";
import type { DecisionRefusal } from "../domain/policy-decision.ts";
import type { RateLimit, RateLimitScope, RatePeriod } from "../domain/rate-limit.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** A rate limit as it is written in a configuration. */
export interface RateLimitConfiguration {
  /** Names it in errors and records; 1 to 255 visible ASCII characters, unique among rate limits and budgets. */
  readonly id: string;
  readonly scope?: RateLimitScope;
  /** `requests` and `tokens` need `per`; `concurrentSteps` limits how many Steps are in flight at once. */
  readonly limit:
    | { readonly requests: number }
    | { readonly tokens: number }
    | { readonly concurrentSteps: number };
  readonly per?: RatePeriod;
  /**
   * Requests or tokens that are allowed at once, at least 1. Default: a tenth of the limit. No window as long as the period
   * sees more than the limit and the burst together.
   */
  readonly burst?: number;
}

/** A rate limit that passed its schema. */
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

/** A rate limit that counts a spender, and the counter it does so with. */
export interface RateTemplate {
  readonly rateLimit: RateLimit;
  readonly subject: string;
}

/**
 * The hold of a rate limit at a time. A pace is a generic cell rate algorithm (GCRA): its counter is the time until which
 * the rate is used up, in microseconds. A request fits while that is less than the burst ahead of now.
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
  // A request larger than the burst waits until nothing is used up, and then keeps the next ones waiting.
  const room = Math.max(burstTime(rateLimit), units > rateLimit.limit ? 0 : amount);
  return { ...counter, unit, limit: floor + room, amount, floor };
}

/**
 * The counter of a rate limit. It has no period: numbers below 0 keep it apart from counters of another unit that its id had
 * before.
 */
export function rateCounter({ id, unit }: RateLimit, subject: string): BudgetCounterKey {
  return { budgetId: id, subject, periodStart: unit === "steps" ? -2 : -1 };
}

/** How long a rate limit takes to allow this many requests or tokens, in whole microseconds. */
function timeOf({ unit, limit, per }: RateLimit, units: number): number {
  const period = per === null ? 0 : periodMicroseconds[per];
  // A request takes a whole number, so that a burst of them takes exactly as many times as long.
  return unit === "requests"
    ? units * Math.ceil(period / limit)
    : Math.ceil((units * period) / limit);
}

function burstTime(rateLimit: RateLimit): number {
  return timeOf(rateLimit, rateLimit.burst);
}

/** How much of a rate limit fits into a time in microseconds. */
function unitsIn(rateLimit: RateLimit, time: number): number {
  return Math.floor(time / Math.max(timeOf(rateLimit, 1_000) / 1_000, Number.MIN_VALUE));
}

/** The remainder of a rate limit, and how long it stays used up. */
export interface RateState {
  readonly rateLimit: RateLimit;
  readonly remaining: number;
  /** Milliseconds until its whole burst is there again. */
  readonly resetMs: number;
}

/** The state of a pace once its counter is at this time. */
export function rateStateAt(rateLimit: RateLimit, usedUntil: number, at: number): RateState {
  const ahead = Math.max(0, usedUntil - at * 1_000);
  const room = Math.max(0, burstTime(rateLimit) - ahead);
  return { rateLimit, remaining: unitsIn(rateLimit, room), resetMs: Math.ceil(ahead / 1_000) };
}

/**
 * The six `x-ratelimit-*` headers that SDKs read: of the rate limits in requests and in tokens, the one that has the least
 * left of each. Names and durations as OpenAI's API has them.
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

/** What a rate limit refused, as the decision records it: in requests, tokens or Steps. */
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

/** How long a client waits before a Step that is in flight may have ended. */
const stepWaitMs = 1_000;

/** Names the rate limit and when to try again. Others' use of it stays their own. */
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
  if (needed > rateLimit.limit)
    return exceeded(
      `${name} allows ${rateLimit.limit} tokens per ${rateLimit.per}, fewer than this request may use. Lower max_tokens or shorten the request.`,
      {},
    );
  const waitMs = Math.max(1, Math.ceil((hold.amount - left) / 1_000));
  const state = rateStateAt(rateLimit, hold.limit - left, at);
  return exceeded(`${name} is reached. Try again in ${durationText(waitMs)}.`, {
    ...waitHeaders(waitMs),
    ...rateHeaders([state]),
  });
}

function waitHeaders(ms: number): Readonly<Record<string, string>> {
  return { "retry-after": String(Math.ceil(ms / 1_000)), "retry-after-ms": String(ms) };
}

function exceeded(message: string, headers: Readonly<Record<string, string>>): GatewayError {
  return new GatewayError("rate_limit_exceeded", message, { headers });
}
