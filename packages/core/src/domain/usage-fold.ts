import { formatModelId } from "./model-id.ts";
import { selectsModel } from "./model-pattern.ts";
import { lowerAscii } from "./pattern.ts";
import type { Attempt, Step } from "./step.ts";
import type { SummaryDimension, UsageGroup, UsageSums } from "./usage-group.ts";
import { addTo, noSums, requireExact, sumsOfAttempt, type Tally } from "./usage-sums.ts";

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
  /** Newest Steps first, so that a key's label is its latest. */
  addStep(step: SummedStep): void;
  addGroup(group: UsageGroup): void;
  readonly size: number;
  groups(): readonly UsageGroup[];
}

/**
 * Every attempt counts in the group of its own model and account, so money and tokens add up for any dimensions.
 * @throws GatewayError `invalid_argument` if a sum isn't exact
 */
export function createUsageFold(
  by: readonly SummaryDimension[],
  selection: AttemptSelection = {},
): UsageFold {
  const groups = new Map<string, UsageGroup & { readonly sums: Tally }>();
  const add = (
    values: UsageGroup["values"],
    keyLabel: string | null,
    sums: UsageSums,
    name = JSON.stringify(values),
  ): void => {
    const group = groups.get(name) ?? { values, keyLabel, sums: { ...noSums } };
    groups.set(name, group);
    addTo(group.sums, sums);
  };
  return {
    addStep(step) {
      const label = by.includes("key") ? step.keyLabel : null;
      const counted: string[] = [];
      for (const attempt of step.attempts) {
        if (!isSelected(attempt, selection)) continue;
        const values = by.map((dimension) => dimensions[dimension](step, attempt));
        const name = JSON.stringify(values);
        const isFirst = !counted.includes(name);
        if (isFirst) counted.push(name);
        add(values, label, sumsOfAttempt(attempt, isFirst ? 1 : 0), name);
      }
    },
    addGroup: ({ values, keyLabel, sums }) => add(values, keyLabel, sums),
    get size() {
      return groups.size;
    },
    groups: () => [...groups.values()].map(requireExact),
  };
}

const dimensions: Readonly<
  Record<SummaryDimension, (step: SummedStep, attempt: SummedAttempt) => string | null>
> = {
  organization: (step) => step.organizationId,
  user: (step) => step.userId,
  key: (step) => step.keyId,
  session: (step) => step.sessionId,
  source: (step) => step.source,
  dataClass: (step) => step.dataClass,
  day: (step) => new Date(step.openedAt).toISOString().slice(0, 10),
  outcome: (step) => step.outcome ?? "open",
  gateway: (_step, attempt) => attempt.gateway,
  vendor: (_step, attempt) => attempt.vendor,
  model: (_step, attempt) => formatModelId(attempt),
  connection: (_step, attempt) => attempt.connection,
  host: (_step, attempt) => attempt.end?.host ?? null,
};

/** Whether summaries can be grouped by this. */
function isSummaryDimension(name: string): name is SummaryDimension {
  return Object.hasOwn(dimensions, name);
}

/** Everything that summaries can be grouped by. */
export const summaryDimensions: readonly SummaryDimension[] =
  Object.keys(dimensions).filter(isSummaryDimension);

function isSelected(
  attempt: SummedAttempt,
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
