import { namesOf } from "../kernel/names-of.ts";
import { formatModelId } from "./model-id.ts";
import { selectsModel } from "./model-pattern.ts";
import { lowerAscii } from "./pattern.ts";
import type { Attempt, Step } from "./step.ts";
import type { SummaryDimension, UsageGroup } from "./usage-group.ts";
import {
  addAttempt,
  addFew,
  addFigures,
  addGroup,
  addSteps,
  type FewFigures,
  type Figures,
  groupOf,
  noFigures,
} from "./usage-sums.ts";

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

/** The members that a fold into sums by hour reads. */
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

/** Steps that agree in every dimension that `UsageHour` keeps, and the sums over their attempts by model and account. */
export interface FoldedSteps
  extends Pick<SummedStep, "organizationId" | "userId" | "keyId" | "keyLabel" | "source"> {
  readonly dataClass: string;
  readonly outcome: SummedStep["outcome"];
  /** When the newest of them opened. */
  readonly openedAt: number;
  /** How many Steps. 0 for the difference that a correction makes. */
  readonly count: number;
  /** Their models and accounts, each once, in the order of their first attempts. */
  readonly places: readonly FoldedAttempts[];
}

/** Attempts on one model and account. Their figures count no Steps. */
export interface FoldedAttempts
  extends Pick<SummedAttempt, "gateway" | "vendor" | "model" | "connection"> {
  readonly figures: FewFigures;
}

/** Adds up Steps, and sums of Steps, by groups. */
export interface UsageFold {
  addStep(step: UnfoldedStep & Partial<Pick<SummedStep, "sessionId">>): void;
  /** Only for dimensions and selections of attempts that they keep: no Session and no host. */
  addSteps(steps: FoldedSteps): void;
  /** Newest Steps first, so that a key's label is its latest. */
  addGroup(group: UsageGroup): void;
  /** Like `addGroup`, for all groups of a fold with the same dimensions. They may move: that fold must not grow any further. */
  addFold(fold: UsageFold): void;
  readonly size: number;
  groups(): readonly UsageGroup[];
  /** The same groups, before their sums are put together: `toGroup` does it for one. */
  readonly growing: readonly GrowingGroup[];
}

/** A group that can still grow. */
export type GrowingGroup = Pick<UsageGroup, "values"> & {
  readonly figures: Figures;
  keyLabel: string | null;
  /** When the newest Step opened that a label was taken from. */
  labelledAt: number;
};

/**
 * Every attempt counts in the group of its own model and account, so money and tokens add up for any dimensions.
 * @throws GatewayError `invalid_argument` if a sum isn't exact
 */
export function createUsageFold(
  by: readonly SummaryDimension[],
  selection: AttemptSelection = {},
): UsageFold {
  const groups: GrowingGroup[] = [];
  const tree: GroupTree = new Map();
  const labels = by.includes("key");
  const hourName = createHourName();
  const insert = (leaf: GroupTree, group: GrowingGroup): GrowingGroup => {
    leaf.set(groupKey, group);
    groups.push(group);
    return group;
  };
  const groupFor = (
    values: UsageGroup["values"],
    { keyLabel, openedAt }: { readonly keyLabel: string | null; readonly openedAt: number },
  ): GrowingGroup => {
    const leaf = leafOf(tree, values);
    const known = groupOn(leaf);
    if (known === null)
      return insert(leaf, { values, keyLabel, labelledAt: openedAt, figures: noFigures() });
    if (openedAt > known.labelledAt) [known.keyLabel, known.labelledAt] = [keyLabel, openedAt];
    return known;
  };
  /** Finds the group of an attempt or several of the same place. Counts their Steps if they are the first of theirs in it. */
  const groupWith = (
    step: DimensionedStep & { readonly keyLabel: string },
    attempt: DimensionedAttempt,
    counted: GrowingGroup[],
    steps: number,
  ): GrowingGroup | null => {
    if (!isSelected(attempt, selection)) return null;
    const values = by.map((dimension) => dimensions[dimension](step, attempt, hourName));
    const { openedAt } = step;
    const group = groupFor(values, { keyLabel: labels ? step.keyLabel : null, openedAt });
    if (!counted.includes(group)) {
      counted.push(group);
      addSteps(group.figures, steps);
    }
    return group;
  };
  return {
    addStep(step) {
      const counted: GrowingGroup[] = [];
      for (const attempt of step.attempts) {
        const group = groupWith(step, attempt, counted, 1);
        if (group !== null) addAttempt(group.figures, attempt);
      }
    },
    addSteps(steps) {
      const counted: GrowingGroup[] = [];
      for (const place of steps.places) {
        const group = groupWith(steps, place, counted, steps.count);
        if (group !== null) addFew(group.figures, place.figures);
      }
    },
    addGroup: (group) => addGroup(groupFor(group.values, olderThanAll(group)).figures, group),
    addFold({ growing }) {
      for (const group of growing) {
        const leaf = leafOf(tree, group.values);
        const known = groupOn(leaf);
        if (known === null) insert(leaf, { ...group, labelledAt: Number.NEGATIVE_INFINITY });
        else addFigures(known.figures, group.figures);
      }
    },
    get size() {
      return groups.length;
    },
    groups: () => groups.map(toGroup),
    growing: groups,
  };
}

/** @throws GatewayError `invalid_argument` if a sum isn't exact */
export function toGroup({ values, keyLabel, figures }: GrowingGroup): UsageGroup {
  return { values, keyLabel, ...groupOf(figures) };
}

/** The label of a group whose Steps are older than all before. */
function olderThanAll({ keyLabel }: { readonly keyLabel: string | null }) {
  return { keyLabel, openedAt: Number.NEGATIVE_INFINITY };
}

/** Groups by the values of their dimensions, a level for each. */
type GroupTree = Map<string | null | typeof groupKey, GroupTree | GrowingGroup>;

/** Not a value of any dimension. */
const groupKey = Symbol("group");

function leafOf(tree: GroupTree, values: UsageGroup["values"]): GroupTree {
  let leaf = tree;
  for (const value of values) {
    const known = leaf.get(value);
    const next: GroupTree = known instanceof Map ? known : new Map();
    if (known === undefined) leaf.set(value, next);
    leaf = next;
  }
  return leaf;
}

function groupOn(leaf: GroupTree): GrowingGroup | null {
  const known = leaf.get(groupKey);
  return known === undefined || known instanceof Map ? null : known;
}

type DimensionedStep = Omit<UnfoldedStep, "keyLabel" | "attempts"> &
  Partial<Pick<SummedStep, "sessionId">>;

type DimensionedAttempt = Pick<SummedAttempt, "gateway" | "vendor" | "model" | "connection"> & {
  readonly end?: { readonly host: string | null } | null;
};

/** The name of the hour around a time. Steps come hour by hour, and formatting a time takes longer than adding a Step. */
function createHourName(): (at: number) => string {
  let [from, name] = [Number.NaN, ""];
  return (at) => {
    if (!(at >= from && at < from + hourMs)) {
      from = hourOf(at);
      name = new Date(from).toISOString();
    }
    return name;
  };
}

const hourMs = 3_600_000;

/** The start of the hour around a time. */
export function hourOf(at: number): number {
  return at - (((at % hourMs) + hourMs) % hourMs);
}

const dimensions: Readonly<
  Record<
    SummaryDimension,
    (
      step: DimensionedStep,
      attempt: DimensionedAttempt,
      hourName: (at: number) => string,
    ) => string | null
  >
> = {
  organization: (step) => step.organizationId,
  user: (step) => step.userId,
  key: (step) => step.keyId,
  session: (step) => step.sessionId ?? null,
  source: (step) => step.source,
  dataClass: (step) => step.dataClass,
  day: (step, _attempt, hourName) => hourName(step.openedAt).slice(0, 10),
  hour: (step, _attempt, hourName) => hourName(step.openedAt),
  outcome: (step) => step.outcome ?? "open",
  gateway: (_step, attempt) => attempt.gateway,
  vendor: (_step, attempt) => attempt.vendor,
  model: (_step, attempt) => formatModelId(attempt),
  connection: (_step, attempt) => attempt.connection,
  host: (_step, attempt) => attempt.end?.host ?? null,
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
