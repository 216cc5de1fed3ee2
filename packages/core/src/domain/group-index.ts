import type { SummaryDimension, UsageGroup } from "./usage-group.ts";
import { type Figures, noFigures } from "./usage-sums.ts";

type Value = UsageGroup["values"][number];

/** Values of some dimensions of a summary, at their places among all, and null at the others. Equal values have equal keys. */
export interface PartOfValues {
  readonly key: Value;
  readonly values: UsageGroup["values"];
}

/** Those dimensions of a summary that one source has. */
interface Part<Source> {
  /** Their values of a source. */
  of(source: Source): PartOfValues;
  /** Their values among those of all dimensions. */
  in(values: UsageGroup["values"]): PartOfValues;
}

/** Selects the dimensions of a summary that a table can read. */
export function partOf<Source>(
  by: readonly SummaryDimension[],
  dimensions: Readonly<Partial<Record<SummaryDimension, (source: Source) => Value>>>,
): Part<Source> {
  const own = by.map((dimension) => dimensions[dimension]);
  const places = own.flatMap((read, at) => (read ? [at] : []));
  const [only = -1] = places;
  const withKey = (values: UsageGroup["values"]): PartOfValues => ({
    key: places.length > 1 ? JSON.stringify(values) : (values[only] ?? null),
    values,
  });
  return {
    of: (source) => withKey(own.map((read) => read?.(source) ?? null)),
    in: (values) => withKey(values.map((value, at) => (own[at] ? value : null))),
  };
}

/** The values of all dimensions. */
function joined({ time, steps }: GroupsOfSteps, place: PartOfValues): UsageGroup["values"] {
  return time.values.map((value, at) => value ?? steps.values[at] ?? place.values[at] ?? null);
}

/** A group that can still grow. */
export type GrowingGroup = Pick<UsageGroup, "values"> & {
  readonly figures: Figures;
  keyLabel: string | null;
  /** When the newest Step opened that a label was taken from. */
  labelledAt: number;
};

/** Those groups of an index that agree in their time and in the values of their Steps, by the key of their place. */
export interface GroupsOfSteps {
  readonly time: PartOfValues;
  readonly steps: PartOfValues;
  readonly byPlace: Map<Value, GrowingGroup>;
}

/** Finds groups by three parts of their values: their time, and the values of their Steps and of the attempts' places. */
export interface GroupIndex {
  /** Looked up once for all places of the same Steps. */
  ofSteps(time: PartOfValues, steps: PartOfValues): GroupsOfSteps;
  /** The group of a place. Notes the label if the Step is the newest so far. */
  at(
    groups: GroupsOfSteps,
    place: PartOfValues,
    newest: { readonly keyLabel: string | null; readonly openedAt: number },
  ): GrowingGroup;
  /** In the order of their creation. */
  readonly all: readonly GrowingGroup[];
}

/** Creates an index without groups. */
export function createGroupIndex(): GroupIndex {
  const all: GrowingGroup[] = [];
  const groups = new Map<Value, Map<Value, Map<Value, GrowingGroup>>>();
  return {
    all,
    ofSteps(time, steps) {
      return { time, steps, byPlace: within(within(groups, time.key), steps.key) };
    },
    at(of, place, { keyLabel, openedAt: labelledAt }) {
      const known = of.byPlace.get(place.key);
      if (known === undefined) {
        const values = joined(of, place);
        const group = { values, keyLabel, labelledAt, figures: noFigures() };
        of.byPlace.set(place.key, group);
        all.push(group);
        return group;
      }
      if (labelledAt > known.labelledAt)
        [known.keyLabel, known.labelledAt] = [keyLabel, labelledAt];
      return known;
    },
  };
}

function within<Inner>(outer: Map<Value, Map<Value, Inner>>, key: Value): Map<Value, Inner> {
  const known = outer.get(key);
  if (known) return known;
  const inner = new Map<Value, Inner>();
  outer.set(key, inner);
  return inner;
}
