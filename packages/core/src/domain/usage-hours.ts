import type { AttemptFigures } from "./correction.ts";
import {
  entryOf,
  type FoldedAttempts,
  type FoldedSteps,
  type HourCaller,
  type HourPlace,
  namesIn,
  type PackedSteps,
  packSteps,
  readPacked,
} from "./packed-hours.ts";
import type { Attempt, Step } from "./step.ts";
import { hourOf, type UnfoldedStep } from "./usage-fold.ts";
import { addAttempt, addFew, type Figures, fewOf, noFigures } from "./usage-sums.ts";

/** Whether sums tell users and keys apart. `totals` don't, so they stay few, however many users there are. */
export type HourDetail = "callers" | "totals";

/** Sums over Steps of one organization that opened within one hour. An hour may have several. Never changed once written. */
export interface UsageHour extends PackedSteps {
  readonly organizationId: string;
  /** The same Steps are in rows of both. */
  readonly detail: HourDetail;
  /** Start of the hour, in milliseconds since the epoch. */
  readonly hour: number;
  readonly id: string;
}

/** Every detail of hourly sums. */
export const hourDetails: readonly HourDetail[] = ["callers", "totals"];

/** The rows that keep sums over Steps. */
export function usageHours(
  place: Pick<UsageHour, "organizationId" | "hour" | "id">,
  folded: readonly FoldedSteps[],
): readonly UsageHour[] {
  return hourDetails.map((detail) => ({
    ...{ ...place, detail },
    ...packSteps(place.hour, detail === "callers" ? folded : totalsOf(folded)),
  }));
}

/** Steps as the sums of a detail see them. */
export function inDetail<Steps extends { userId: string; keyId: string; keyLabel: string }>(
  detail: HourDetail,
  steps: Steps,
): Steps {
  return detail === "callers" ? steps : { ...steps, userId: "", keyId: "", keyLabel: "" };
}

/** Adds up Steps of one organization and hour, as they were first recorded: corrections are separate rows. */
export interface HourFold {
  add(step: UnfoldedStep): void;
  readonly size: number;
  steps(): readonly FoldedSteps[];
}

type GrowingPlace = Omit<FoldedAttempts, "figures"> & { readonly figures: Figures };
type GrowingSteps = Omit<FoldedSteps, "places" | "openedAt" | "count"> & {
  openedAt: number;
  count: number;
  readonly places: GrowingPlace[];
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

function placeName({ gateway, vendor, model, connection }: HourPlace): string {
  return `${connection}/${gateway}/${vendor}/${model}`;
}

function placeOf({ gateway, vendor, model, connection }: HourPlace): HourPlace {
  return { gateway, vendor, model, connection };
}

function emptyPlace(place: HourPlace): GrowingPlace {
  return { ...placeOf(place), figures: noFigures() };
}

function foldedFrom(steps: GrowingSteps): FoldedSteps {
  return {
    ...steps,
    places: steps.places.map((place) => ({ ...place, figures: fewOf(place.figures) })),
  };
}

type StepFacts = Omit<FoldedSteps, "count" | "places">;

function callerOf(step: HourCaller): HourCaller {
  const { organizationId, userId, keyId, keyLabel, source, dataClass, outcome } = step;
  return { organizationId, userId, keyId, keyLabel, source, dataClass, outcome };
}

function stepFactsOf(step: StepFacts): StepFacts {
  return { ...callerOf(step), openedAt: step.openedAt };
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
  const after = { end: attempt.end && { ...attempt.end, usage, costNanoUsd } };
  const steps = difference(step, attempt, after);
  return usageHours({ organizationId, hour: hourOf(openedAt), id }, [steps]);
}

/** The differences that all corrections of a Step make. */
export function correctedSteps(step: Step): readonly FoldedSteps[] {
  return step.attempts.flatMap((attempt) =>
    attempt.corrections?.length ? difference(step, { ...attempt, corrections: [] }, attempt) : [],
  );
}

/** The new figures of an attempt, minus its earlier ones. */
function difference(
  step: Step,
  before: Attempt,
  after: Pick<Attempt, "end" | "corrections">,
): FoldedSteps {
  const place = emptyPlace(before);
  addAttempt(place.figures, before, -1);
  addAttempt(place.figures, after);
  return foldedFrom({ ...stepFactsOf(step), count: 0, places: [place] });
}

/** The same for Steps whose sums are added together: the same caller, class and outcome, and the same models in order. */
export function samePath(steps: FoldedSteps): object {
  return [callerOf(steps), steps.places.map(placeOf)];
}

/** The groups of a `UsageHour`. */
export function foldedIn(row: UsageHour): readonly FoldedSteps[] {
  const { callers, places } = namesIn(row);
  const { hour } = row;
  const groups: GrowingSteps[] = [];
  readPacked(row, {
    steps: (caller, afterHour, count) =>
      groups.push({
        ...{ ...entryOf(callers, caller), openedAt: hour + afterHour, count, places: [] },
      }),
    place(at) {
      const place = emptyPlace(entryOf(places, at));
      groups.at(-1)?.places.push(place);
      return place.figures;
    },
  });
  return groups.map(foldedFrom);
}
