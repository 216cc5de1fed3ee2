import type { RatePeriod } from "@tollgate/core";

/** A rate limit. `per` is null for concurrent Steps. */
export interface CheckedLimit {
  readonly id: string;
  readonly unit: "requests" | "tokens" | "steps";
  readonly limit: number;
  readonly per: RatePeriod | null;
  readonly burst: number;
}

/** A Step that a rate limit counted, at the times that the store recorded. */
export interface CountedStep {
  readonly subject: string;
  /** When it opened and settled, in milliseconds since the epoch. */
  readonly at: number;
  readonly settledAt: number;
  /** Requests or tokens that it used. */
  readonly used: number;
  /** Requests or tokens that it reserved when it opened. */
  readonly reserved: number;
}

/** How many Steps a subject had in flight from this time on. */
export interface InFlight {
  readonly subject: string;
  readonly at: number;
  readonly held: number;
}

/** A request that a rate limit rejected. */
export interface Rejection {
  readonly subject: string;
  readonly at: number;
}

/** The history of one rate limit under load, in order of time. */
export interface RateHistory {
  readonly limit: CheckedLimit;
  readonly steps: readonly CountedStep[];
  /** Only for limits of concurrent Steps. */
  readonly inFlight: readonly InFlight[];
  readonly rejections: readonly Rejection[];
}

/** The requests or tokens that a rate limit let through to one subject. */
export interface SubjectResult {
  readonly subject: string;
  /** The most in any window as long as the period, or in flight at once. */
  readonly most: number;
  /** The most that this window may have: the limit, the burst, and the tokens that earlier Steps returned in it. */
  readonly allowed: number;
  /**
   * How much of the limit was served between the first and the last rejection, while demand exceeded the limit. Null without
   * two rejections. Includes one Step more, which may have had no room by less than it needed.
   */
  readonly share: number | null;
}

const periodMs: Readonly<Record<RatePeriod, number>> = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** Computes for every subject what the rate limit let through. */
export function checkHistory(history: RateHistory): readonly SubjectResult[] {
  const { limit, steps, inFlight, rejections } = history;
  const counted = limit.per === null ? inFlight : steps;
  return [...new Set(counted.map(({ subject }) => subject))].sort().map((subject) => {
    const of = <Row extends { readonly subject: string }>(rows: readonly Row[]): readonly Row[] =>
      rows.filter((row) => row.subject === subject);
    const times = of(rejections).map(({ at }) => at);
    const busy = { from: Math.min(...times), to: Math.max(...times) };
    const isBusy = times.length > 1 && busy.to > busy.from;
    const result =
      limit.per === null
        ? inFlightResult(limit, of(inFlight), busy)
        : windowResult(limit, of(steps), { ...busy, window: periodMs[limit.per] });
    return { subject, ...result, share: isBusy ? result.share : null };
  });
}

interface Busy {
  readonly from: number;
  readonly to: number;
}

type Result = Omit<SubjectResult, "subject" | "share"> & { readonly share: number };

function inFlightResult({ limit }: CheckedLimit, states: readonly InFlight[], busy: Busy): Result {
  let area = 0;
  for (const [index, { at, held }] of states.entries()) {
    const until = Math.min(states[index + 1]?.at ?? busy.to, busy.to);
    area += held * Math.max(0, until - Math.max(at, busy.from));
  }
  const most = Math.max(0, ...states.map(({ held }) => held));
  return { most, allowed: limit, share: area / (limit * (busy.to - busy.from)) };
}

function windowResult(
  { limit, burst }: CheckedLimit,
  steps: readonly CountedStep[],
  { from, to, window }: Busy & { readonly window: number },
): Result {
  const sorted = steps.toSorted((a, b) => a.at - b.at);
  let tightest = { most: 0, allowed: limit + burst };
  let [sum, first] = [0, 0];
  for (const { at, used } of sorted) {
    sum += used;
    for (let oldest = sorted[first]; oldest && at - oldest.at > window; oldest = sorted[++first])
      sum -= oldest.used;
    const allowed = limit + burst + returnedIn(sorted.slice(0, first), at - window, at);
    if (sum - allowed > tightest.most - tightest.allowed) tightest = { most: sum, allowed };
  }
  const served = sorted
    .filter(({ at }) => at > from && at <= to)
    .reduce((total, { used }) => total + used, Math.max(0, ...sorted.map(({ used }) => used)));
  return { ...tightest, share: served / ((limit * (to - from)) / window) };
}

/** The tokens that Steps from before a window returned in it. */
function returnedIn(earlier: readonly CountedStep[], from: number, to: number): number {
  return earlier
    .filter(({ settledAt }) => settledAt >= from && settledAt <= to)
    .reduce((total, { reserved, used }) => total + Math.max(0, reserved - used), 0);
}
