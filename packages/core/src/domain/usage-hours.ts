import type { AttemptFigures } from "./correction.ts";
import type { Attempt, Step } from "./step.ts";
import {
  type FoldedAttempts,
  type FoldedSteps,
  hourOf,
  type SummedAttempt,
  type UnfoldedStep,
} from "./usage-fold.ts";
import { addAttempt, addFew, type Figures, fewOf, noFigures } from "./usage-sums.ts";

/** Whether sums tell users and keys apart. `totals` don't, so they stay few, however many users there are. */
export type UsageDetail = "callers" | "totals";

/** Sums over Steps of one organization that opened within one hour. An hour may have several. Never changed once written. */
export interface UsageHour {
  readonly organizationId: string;
  /** The same Steps are in rows of both. */
  readonly detail: UsageDetail;
  /** Start of the hour, in milliseconds since the epoch. */
  readonly hour: number;
  readonly id: string;
  /** Written by `foldedToText`. */
  readonly folded: string;
}

/** The details in which sums are kept. */
export const usageDetails: readonly UsageDetail[] = ["callers", "totals"];

/** The rows that keep sums over Steps. */
export function usageHours(
  place: Pick<UsageHour, "organizationId" | "hour" | "id">,
  folded: readonly FoldedSteps[],
): readonly UsageHour[] {
  return usageDetails.map((detail) => ({
    ...{ ...place, detail },
    folded: foldedToText(detail === "callers" ? folded : totalsOf(folded)),
  }));
}

/** Steps as the sums of a detail see them. */
export function inDetail<Steps extends { userId: string; keyId: string; keyLabel: string }>(
  detail: UsageDetail,
  steps: Steps,
): Steps {
  return detail === "callers" ? steps : { ...steps, userId: "", keyId: "", keyLabel: "" };
}

/** Adds up Steps of one organization and hour, as they were first recorded: corrections are rows of their own. */
export interface HourFold {
  add(step: UnfoldedStep): void;
  readonly size: number;
  steps(): readonly FoldedSteps[];
}

type GrowingPlace = Omit<FoldedAttempts, "figures"> & { readonly figures: Figures };
type GrowingSteps = Omit<FoldedSteps, "places" | "openedAt" | "count"> & {
  openedAt: number;
  count: number;
  readonly places: readonly GrowingPlace[];
};

/** Creates an empty fold. */
export function createHourFold(): HourFold {
  const groups = new Map<string, GrowingSteps>();
  return {
    add(step) {
      const { userId, keyId, keyLabel, source, dataClass, outcome, attempts } = step;
      const names = attempts.map(placeName);
      const path = names.length === 1 ? names : [...new Set(names)];
      const name = JSON.stringify([userId, keyId, keyLabel, source, dataClass, outcome, path]);
      let group = groups.get(name);
      if (group === undefined) {
        const places = path.flatMap((place) => attempts[names.indexOf(place)] ?? []);
        group = { ...stepFactsOf(step), count: 0, places: places.map(emptyPlace) };
        groups.set(name, group);
      }
      group.count++;
      group.openedAt = Math.max(group.openedAt, step.openedAt);
      for (const [at, { end }] of attempts.entries()) {
        const place = group.places[path.indexOf(names[at] ?? "")];
        if (place !== undefined) addAttempt(place.figures, { end });
      }
    },
    get size() {
      return groups.size;
    },
    steps: () => [...groups.values()].map(foldedFrom),
  };
}

type Place = Pick<SummedAttempt, "gateway" | "vendor" | "model" | "connection">;

function placeName({ gateway, vendor, model, connection }: Place): string {
  return `${connection}/${gateway}/${vendor}/${model}`;
}

function placeOf({ gateway, vendor, model, connection }: Place): Place {
  return { gateway, vendor, model, connection };
}

function emptyPlace(place: Place): GrowingPlace {
  return { ...placeOf(place), figures: noFigures() };
}

function foldedFrom(steps: GrowingSteps): FoldedSteps {
  return {
    ...steps,
    places: steps.places.map((place) => ({ ...place, figures: fewOf(place.figures) })),
  };
}

type StepFacts = Omit<FoldedSteps, "count" | "places">;

function callerOf(step: Caller): Caller {
  const { userId, keyId, keyLabel, source, dataClass, outcome } = step;
  return { userId, keyId, keyLabel, source, dataClass, outcome };
}

function stepFactsOf(step: StepFacts): StepFacts {
  const { organizationId, openedAt } = step;
  return { organizationId, openedAt, ...callerOf(step) };
}

/** Adds up the sums of all callers, by models, source, class and outcome. */
function totalsOf(folded: readonly FoldedSteps[]): readonly FoldedSteps[] {
  const groups = new Map<string, GrowingSteps>();
  for (const steps of folded) {
    const total = inDetail("totals", steps);
    const name = JSON.stringify(samePath(total));
    const group = groups.get(name) ?? { ...total, count: 0, places: total.places.map(emptyPlace) };
    groups.set(name, group);
    group.count += steps.count;
    group.openedAt = Math.max(group.openedAt, steps.openedAt);
    for (const [at, { figures }] of steps.places.entries())
      addFew(group.places[at]?.figures ?? [], figures);
  }
  return [...groups.values()].map(foldedFrom);
}

/** The rows that a correction of an attempt adds to the hour of its Step: the new figures minus those that counted before. */
export function correctionHours(
  step: Step,
  attempt: Attempt,
  { id, usage, costNanoUsd }: AttemptFigures & { readonly id: string },
): readonly UsageHour[] {
  const { organizationId, openedAt } = step;
  const { end } = attempt;
  const place = emptyPlace(attempt);
  addAttempt(place.figures, attempt, -1);
  addAttempt(place.figures, { end: end && { ...end, usage, costNanoUsd } });
  const steps = { ...stepFactsOf(step), count: 0, places: [place] };
  return usageHours({ organizationId, hour: hourOf(openedAt), id }, [foldedFrom(steps)]);
}

/** The differences that all corrections of a Step make. */
export function correctedSteps(step: Step): readonly FoldedSteps[] {
  return step.attempts.flatMap((attempt) => {
    if (!attempt.corrections?.length) return [];
    const place = emptyPlace(attempt);
    addAttempt(place.figures, { end: attempt.end }, -1);
    addAttempt(place.figures, attempt);
    return [foldedFrom({ ...stepFactsOf(step), count: 0, places: [place] })];
  });
}

/** The same for Steps whose sums are added together: the same caller, class and outcome, and the same models in order. */
export function samePath(steps: FoldedSteps): object {
  return [callerOf(steps), steps.places.map(placeOf)];
}

type Caller = Omit<StepFacts, "organizationId" | "openedAt">;

/**
 * The text of a `UsageHour`. Its groups are one list of numbers and name callers and places by index, so a month of them is few
 * characters and few values to parse. A group is its caller, the time its newest Step opened, its count, and the number of its
 * places. A place is its index, the length of its figures, and the figures.
 */
type Written = readonly [
  callers: readonly (readonly [
    ...names: [userId: string, keyId: string, keyLabel: string],
    source: Caller["source"],
    dataClass: string,
    outcome: Caller["outcome"],
  ])[],
  places: readonly (readonly [
    ...names: [gateway: string, vendor: string, model: string],
    connection: Place["connection"],
  ])[],
  groups: readonly number[],
];

/** Writes the groups of a `UsageHour`. */
export function foldedToText(folded: readonly FoldedSteps[]): string {
  const callers = createIndex<Written[0][number]>();
  const places = createIndex<Written[1][number]>();
  const groups: number[] = [];
  for (const group of folded) {
    const { userId, keyId, keyLabel, source, dataClass, outcome } = group;
    const caller = callers.indexOf([userId, keyId, keyLabel, source, dataClass, outcome]);
    groups.push(caller, group.openedAt, group.count, group.places.length);
    for (const { gateway, vendor, model, connection, figures } of group.places)
      groups.push(places.indexOf([gateway, vendor, model, connection]), figures.length, ...figures);
  }
  const written: Written = [callers.values, places.values, groups];
  return JSON.stringify(written);
}

function createIndex<Value>() {
  const values: Value[] = [];
  const known = new Map<string, number>();
  return {
    values,
    indexOf(value: Value): number {
      const name = JSON.stringify(value);
      const at = known.get(name) ?? values.push(value) - 1;
      known.set(name, at);
      return at;
    },
  };
}

/** Reads the groups of a `UsageHour`. */
export function foldedFromText({
  organizationId,
  folded,
}: Pick<UsageHour, "organizationId" | "folded">): readonly FoldedSteps[] {
  const [callers, places, numbers]: Written = JSON.parse(folded);
  const groups: FoldedSteps[] = [];
  for (let at = 0; at < numbers.length; ) {
    const caller = entryOf(callers, numbers[at]);
    const [openedAt, count, length] = [
      numbers[at + 1] ?? 0,
      numbers[at + 2] ?? 0,
      numbers[at + 3] ?? 0,
    ];
    const of: FoldedAttempts[] = [];
    at += 4;
    for (let number = 0; number < length; number++) {
      const place = entryOf(places, numbers[at]);
      const end = at + 2 + (numbers[at + 1] ?? 0);
      of.push({
        ...{ gateway: place[0], vendor: place[1], model: place[2], connection: place[3] },
        figures: numbers.slice(at + 2, end),
      });
      at = end;
    }
    groups.push({
      ...{ organizationId, userId: caller[0], keyId: caller[1], keyLabel: caller[2] },
      ...{ source: caller[3], dataClass: caller[4], outcome: caller[5] },
      ...{ openedAt, count, places: of },
    });
  }
  return groups;
}

function entryOf<Value>(values: readonly Value[], at = -1): Value {
  const value = values[at];
  if (value === undefined) throw new TypeError("sums by hour are damaged");
  return value;
}
