import type { AttemptFigures } from "./correction.ts";
import type { Attempt, Step } from "./step.ts";
import {
  type FoldedAttempts,
  type FoldedSteps,
  hourOf,
  type SummedAttempt,
  type UnfoldedStep,
} from "./usage-fold.ts";
import { addAttempt, type FewFigures, type Figures, fewOf, noFigures } from "./usage-sums.ts";

/** Sums over Steps of one organization that opened within one hour. An hour may have several. Never changed once written. */
export interface UsageHour {
  readonly organizationId: string;
  /** Start of the hour, in milliseconds since the epoch. */
  readonly hour: number;
  readonly id: string;
  /** Written by `foldedToText`. */
  readonly folded: string;
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

/** The row that a correction of an attempt adds to the hour of its Step: the new figures minus those that counted before. */
export function correctionHour(
  step: Step,
  attempt: Attempt,
  { id, usage, costNanoUsd }: AttemptFigures & { readonly id: string },
): UsageHour {
  const { end } = attempt;
  const place = emptyPlace(attempt);
  addAttempt(place.figures, attempt, -1);
  addAttempt(place.figures, { end: end && { ...end, usage, costNanoUsd } });
  const steps = { ...stepFactsOf(step), count: 0, places: [place] };
  const folded = foldedToText([foldedFrom(steps)]);
  return { organizationId: step.organizationId, hour: hourOf(step.openedAt), id, folded };
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

/**
 * The text of a `UsageHour`. Groups name their caller and places by index, so a month of them is few characters, and few texts
 * to compare.
 */
type Written = readonly [
  callers: readonly Caller[],
  places: readonly Place[],
  groups: readonly (readonly [
    caller: number,
    openedAt: number,
    count: number,
    places: readonly (readonly [place: number, figures: FewFigures])[],
  ])[],
];

type Caller = Omit<StepFacts, "organizationId" | "openedAt">;

/** Writes the groups of a `UsageHour`. */
export function foldedToText(folded: readonly FoldedSteps[]): string {
  const callers = createIndex<Caller>();
  const places = createIndex<Place>();
  const groups = folded.map((group): Written[2][number] => [
    callers.indexOf(callerOf(group)),
    group.openedAt,
    group.count,
    group.places.map((place) => [places.indexOf(placeOf(place)), place.figures]),
  ]);
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
  const [callers, places, groups]: Written = JSON.parse(folded);
  return groups.map(([caller, openedAt, count, parts]) => ({
    ...entryOf(callers, caller),
    ...{ organizationId, openedAt, count },
    places: parts.map(([place, figures]) => ({ ...entryOf(places, place), figures })),
  }));
}

function entryOf<Value>(values: readonly Value[], at: number): Value {
  const value = values[at];
  if (value === undefined) throw new TypeError("sums by hour are damaged");
  return value;
}
