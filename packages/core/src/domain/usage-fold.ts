import { namesOf } from "../kernel/names-of.ts";
import { createGroupIndex, type GroupsOfSteps, type GrowingGroup, partOf } from "./group-index.ts";
import { formatModelId } from "./model-id.ts";
import { selectsModel } from "./model-pattern.ts";
import { entryOf, type HourCaller, namesIn, type PackedSteps, readPacked } from "./packed-hours.ts";
import { lowerAscii } from "./pattern.ts";
import type { Attempt, Step } from "./step.ts";
import type { SummaryDimension, UsageGroup } from "./usage-group.ts";
import { addAttempt, addFigures, addGroup, addSteps, groupOf } from "./usage-sums.ts";

/** The members of a Step that a summary reads. */
export interface SummedStep
  extends Pick<
    Step,
    | "id"
    | "organizationId"
    | "userId"
    | "keyId"
    | "keyLabel"
    | "sessionId"
    | "source"
    | "dataClass"
    | "openedAt"
    | "outcome"
  > {
  readonly attempts: readonly SummedAttempt[];
}

/** The members that a fold into hourly sums reads. */
export type UnfoldedStep = Omit<SummedStep, "id" | "sessionId">;

/** The members of an attempt that a summary reads. Its last correction replaces the recorded figures. */
export type SummedAttempt = Pick<
  Attempt,
  "number" | "gateway" | "vendor" | "model" | "connection" | "end" | "corrections"
>;

/** Which attempts count. A list matches any of its values. */
export interface AttemptSelection {
  readonly gateway?: readonly string[];
  readonly vendor?: readonly string[];
  /** In lower case. The comparison ignores the ASCII case of the model's name. */
  readonly model?: readonly string[];
  readonly modelPatterns?: readonly string[];
  readonly connection?: readonly string[];
  readonly host?: readonly string[];
}

/** Adds up Steps, and sums of Steps, by groups. */
export interface UsageFold {
  addStep(step: UnfoldedStep & Partial<Pick<SummedStep, "sessionId">>): void;
  /** Only for dimensions and selections of attempts that an hour keeps: no Session and no host. */
  addHour(hour: PackedHour, isCounted?: (caller: HourCaller) => boolean): void;
  /** Newest Steps first, so that a key's label is its latest. */
  addGroup(group: UsageGroup): void;
  /** Like `addGroup`, for all groups of a fold with the same dimensions. Returns itself. */
  addFold(fold: UsageFold): UsageFold;
  readonly size: number;
  groups(): readonly UsageGroup[];
  /** The same groups, before their sums are put together: `toGroup` does it for one. */
  readonly growing: readonly GrowingGroup[];
}

/** The members of a `UsageHour` that a fold reads. */
export interface PackedHour extends PackedSteps {
  readonly organizationId: string;
  readonly hour: number;
}

/**
 * Every attempt counts in the group of its own model and account, so money and tokens add up for any dimensions.
 * @throws GatewayError `invalid_argument` if a sum isn't exact
 */
export function createUsageFold(
  by: readonly SummaryDimension[],
  selection: AttemptSelection = {},
): UsageFold {
  const index = createGroupIndex();
  const labels = by.includes("key");
  const hourName = createHourName();
  const ofTime = partOf(by, timeDimensions);
  const ofSteps = partOf(by, stepDimensions);
  const ofPlace = partOf(by, placeDimensions);
  const timeOf = (at: number) => ofTime.of(hourName(at));
  const named = createNames((row) => {
    const { callers, places } = namesIn(row);
    return {
      callers,
      ofCallers: callers.map((caller) => ofSteps.of(caller)),
      ofPlaces: places.map((place) => (isSelected(place, selection) ? ofPlace.of(place) : null)),
    };
  });
  /** The group of these values. Its Steps are older than all before. */
  const older = ({ values, keyLabel }: Pick<GrowingGroup, "values" | "keyLabel">): GrowingGroup => {
    const groups = index.ofSteps(ofTime.in(values), ofSteps.in(values));
    return index.at(groups, ofPlace.in(values), { keyLabel, openedAt: Number.NEGATIVE_INFINITY });
  };
  const fold: UsageFold = {
    addStep(step) {
      const groups = index.ofSteps(timeOf(step.openedAt), ofSteps.of(step));
      const newest = { keyLabel: labels ? step.keyLabel : null, openedAt: step.openedAt };
      const counted: GrowingGroup[] = [];
      for (const attempt of step.attempts) {
        if (!isSelected(attempt, selection)) continue;
        const group = index.at(groups, ofPlace.of(attempt), newest);
        countOnce(counted, group, 1);
        addAttempt(group.figures, attempt);
      }
    },
    addHour(row, isCounted = () => true) {
      const { callers, ofCallers: parts, ofPlaces } = named(row);
      const time = timeOf(row.hour);
      const ofCallers = callers.map((caller, at) =>
        isCounted(caller) ? index.ofSteps(time, entryOf(parts, at)) : null,
      );
      const counted: GrowingGroup[] = [];
      const newest: { keyLabel: string | null; openedAt: number } = { keyLabel: null, openedAt: 0 };
      let groups: GroupsOfSteps | null = null;
      let count = 0;
      readPacked(row, {
        steps(at, afterHour, steps) {
          groups = entryOf(ofCallers, at);
          if (labels) newest.keyLabel = entryOf(callers, at).keyLabel;
          newest.openedAt = row.hour + afterHour;
          count = steps;
          counted.length = 0;
        },
        place(at) {
          const place = entryOf(ofPlaces, at);
          if (groups === null || place === null) return null;
          const group = index.at(groups, place, newest);
          countOnce(counted, group, count);
          return group.figures;
        },
      });
    },
    addGroup: (group) => addGroup(older(group).figures, group),
    addFold({ growing }) {
      for (const group of growing) addFigures(older(group).figures, group.figures);
      return fold;
    },
    get size() {
      return index.all.length;
    },
    groups: () => index.all.map(toGroup),
    growing: index.all,
  };
  return fold;
}

/** Counts Steps once in a group, however many of their attempts are in it. */
function countOnce(counted: GrowingGroup[], group: GrowingGroup, steps: number): void {
  if (counted.includes(group)) return;
  counted.push(group);
  addSteps(group.figures, steps);
}

/** @throws GatewayError `invalid_argument` if a sum isn't exact */
export function toGroup({ values, keyLabel, figures }: GrowingGroup): UsageGroup {
  return { values, keyLabel, ...groupOf(figures) };
}

/**
 * The name of the hour around a time. Steps come hour by hour and day by day, and formatting a time takes longer than adding
 * a Step.
 */
function createHourName(): (at: number) => string {
  let [from, name] = [Number.NaN, ""];
  let [day, dayName] = [Number.NaN, ""];
  return (at) => {
    if (at >= from && at < from + hourMs) return name;
    from = hourOf(at);
    if (!(from >= day && from < day + dayMs)) {
      dayName = new Date(from).toISOString().slice(0, -hourOfDay.length);
      day = Date.parse(`${dayName}${hourOfDay}`);
    }
    name = `${dayName}T${String((from - day) / hourMs).padStart(2, "0")}:00:00.000Z`;
    return name;
  };
}

const hourOfDay = "T00:00:00.000Z";
const dayMs = 86_400_000;

const hourMs = 3_600_000;

/** The start of the hour around a time. */
export function hourOf(at: number): number {
  return at - (((at % hourMs) + hourMs) % hourMs);
}

type DimensionedStep = Omit<UnfoldedStep, "keyLabel" | "openedAt" | "attempts"> &
  Partial<Pick<SummedStep, "sessionId">>;

type DimensionedAttempt = Pick<SummedAttempt, "gateway" | "vendor" | "model" | "connection"> & {
  readonly end?: { readonly host: string | null } | null;
};

/** Of the name of an hour. */
const timeDimensions = {
  day: (hour: string) => hour.slice(0, 10),
  hour: (hour: string) => hour,
};

const stepDimensions = {
  organization: (step: DimensionedStep) => step.organizationId,
  user: (step: DimensionedStep) => step.userId,
  key: (step: DimensionedStep) => step.keyId,
  session: (step: DimensionedStep) => step.sessionId ?? null,
  source: (step: DimensionedStep) => step.source,
  dataClass: (step: DimensionedStep) => step.dataClass,
  outcome: (step: DimensionedStep) => step.outcome ?? "open",
};

const placeDimensions = {
  gateway: (attempt: DimensionedAttempt) => attempt.gateway,
  vendor: (attempt: DimensionedAttempt) => attempt.vendor,
  model: (attempt: DimensionedAttempt) => formatModelId(attempt),
  connection: (attempt: DimensionedAttempt) => attempt.connection,
  host: (attempt: DimensionedAttempt) => attempt.end?.host ?? null,
};

const dimensions: Readonly<Record<SummaryDimension, unknown>> = {
  ...stepDimensions,
  ...timeDimensions,
  ...placeDimensions,
};

/** Everything that summaries can be grouped by. */
export const summaryDimensions: readonly SummaryDimension[] = namesOf(dimensions);

function isSelected(
  attempt: DimensionedAttempt,
  { gateway, vendor, model, modelPatterns, connection, host }: AttemptSelection,
): boolean {
  return (
    (gateway?.includes(attempt.gateway) ?? true) &&
    (vendor?.includes(attempt.vendor) ?? true) &&
    (model?.includes(lowerAscii(attempt.model)) ?? true) &&
    (connection?.includes(attempt.connection) ?? true) &&
    (host === undefined || (attempt.end?.host != null && host.includes(attempt.end.host))) &&
    selectsModel(modelPatterns, attempt)
  );
}

/** Reads the names of hours, once for those in a row that are equal: a busy organization's mostly are. */
function createNames<Read>(read: (row: PackedHour) => Read): (row: PackedHour) => Read {
  let last: { readonly row: PackedHour; readonly read: Read } | null = null;
  return (row) => {
    if (last?.row.names !== row.names || last.row.organizationId !== row.organizationId)
      last = { row, read: read(row) };
    return last.read;
  };
}
