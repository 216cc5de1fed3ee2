import { ProviderError } from "../contracts/provider.ts";
import { upstreamCode } from "./upstream-code.ts";

/** When calls of a model stop after failures of its provider, and for how long. */
export interface BreakerRules {
  /** The minimum number of failed attempts within `window` that open the breaker. */
  readonly failures: number;
  /** The minimum share of the attempts within `window` that must have failed. Above 0, up to 1. */
  readonly ratio: number;
  /** How far back attempts count. Milliseconds. */
  readonly window: number;
  /** How long an open breaker declines calls before it lets one probe through. Milliseconds. */
  readonly pause: number;
}

export const defaultBreakerRules: BreakerRules = {
  failures: 10,
  ratio: 0.5,
  window: 30_000,
  pause: 30_000,
};

/** Tollgate did not send a call: the model's breaker is open, or its gateway has no place for it. */
export class CallDeclined extends ProviderError {
  constructor(
    reason: "breaker_open" | "queue_full" | "queue_timeout",
    message: string,
    retryAfterMs: number,
  ) {
    super(message, { reason, delivery: "not-sent", status: 503, retryAfterMs });
  }
}

/**
 * Whether a failed attempt counts against its provider: it could not be reached, it broke the connection, it was silent, or
 * it answered with 5xx or as overloaded. A 4xx doesn't count, and neither does 429: it limits an account and says that the
 * provider works.
 */
export function isProviderFault(error: ProviderError): boolean {
  const { delivery, status, timedOut, code } = error;
  return (
    timedOut ||
    delivery === "not-sent" ||
    (status === null ? delivery === "unknown" : status >= 500) ||
    upstreamCode([code], null) === "overloaded"
  );
}

/** A change of a breaker's state, as its event names it. */
export type BreakerChange = "opened" | "half_opened" | "closed";

const slotsPerWindow = 10;

/** Attempts that ended in one tenth of the window. */
interface Slot {
  readonly number: number;
  failed: number;
  all: number;
}

/**
 * The breaker of one model. Closed, it counts how attempts end. Open, it declines them until its pause is over. Then it is
 * half open and lets one probe through, which closes it or opens it again. Times are monotonic, in milliseconds.
 */
export class CircuitBreaker {
  readonly #rules: BreakerRules;
  readonly #changed: (change: BreakerChange) => void;
  #slots: Slot[] = [];
  /** When the pause ends; null if it is closed. */
  #openUntil: number | null = null;
  #isProbing = false;

  constructor(rules: BreakerRules, changed: (change: BreakerChange) => void) {
    this.#rules = rules;
    this.#changed = changed;
  }

  get isClosed(): boolean {
    return this.#openUntil === null;
  }

  /** How long it still declines calls; 0 if it lets the next one through, as a probe if it is open. */
  declinesFor(now: number): number {
    if (this.#openUntil === null) return 0;
    return Math.max(this.#openUntil - now, this.#isProbing ? 1 : 0);
  }

  /** Takes an attempt that it doesn't decline. Returns whether it is the probe. */
  enter(): boolean {
    if (this.#openUntil === null) return false;
    this.#isProbing = true;
    this.#changed("half_opened");
    return true;
  }

  /** The probe was answered. */
  recovered(): void {
    this.#slots = [];
    this.#openUntil = null;
    this.#isProbing = false;
    this.#changed("closed");
  }

  /** The probe showed nothing, because its client left. The next call is another probe. */
  inconclusive(): void {
    this.#isProbing = false;
  }

  /** An attempt failed that counts. Unless it was the probe, it counts only while the breaker is closed. */
  failed(now: number, isProbe: boolean): void {
    if (this.#openUntil !== null && !isProbe) return;
    const { all, failed } = this.#count(now, 1);
    const { failures, ratio, pause } = this.#rules;
    if (!isProbe && (failed < failures || failed < ratio * all)) return;
    this.#slots = [];
    this.#isProbing = false;
    this.#openUntil = now + pause;
    this.#changed("opened");
  }

  /** An attempt was answered. */
  answered(now: number): void {
    if (this.#openUntil === null) this.#count(now, 0);
  }

  /** Adds an attempt, and returns the sums of the window. */
  #count(now: number, failures: 0 | 1): { readonly failed: number; readonly all: number } {
    const number = Math.floor((now * slotsPerWindow) / this.#rules.window);
    this.#slots = this.#slots.filter((slot) => slot.number > number - slotsPerWindow);
    const last = this.#slots.at(-1);
    const slot = last?.number === number ? last : { number, failed: 0, all: 0 };
    if (slot !== last) this.#slots.push(slot);
    slot.all++;
    slot.failed += failures;
    const sum = (of: (slot: Slot) => number) => this.#slots.reduce((all, one) => all + of(one), 0);
    return { failed: sum(({ failed }) => failed), all: sum(({ all }) => all) };
  }
}
