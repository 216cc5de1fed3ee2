import type { SummaryPage, SummaryQuery } from "../contracts/usage-summary.ts";
import type { GrowingGroup } from "../domain/group-index.ts";
import type { OneOrMany } from "../domain/pattern.ts";
import { listed } from "../domain/pattern.ts";
import { createUsageFold, type UsageFold } from "../domain/usage-fold.ts";
import type { Latencies, SummaryDimension, UsageGroup, UsageSums } from "../domain/usage-group.ts";
import { byCost, latenciesOf, noSums, writeSums } from "../domain/usage-sums.ts";
import { read } from "../input/read.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { withStoreErrors } from "./method.ts";
import { dimensionsSchema, seriesOptions } from "./schemas.ts";
import { readStepFilter, type StepFilter } from "./step-filter.ts";
import { organizationsOf } from "./tenant.ts";
import { type OrganizationQuery, requireFewGroups, sumsByHour, wholeHours } from "./usage-hours.ts";

/**
 * One row of a summary: its value of each requested dimension, and its sums. Rows by key include the key's label, from its
 * newest Step. Across organizations, `organization` is always one of the dimensions.
 */
export interface UsageSummary
  extends UsageSums,
    Readonly<Partial<Record<SummaryDimension, string | null>>> {
  readonly keyLabel?: string | null;
}

/** One row of a series: its `hour` (ISO 8601) or `day`, its values, its sums, and how long its attempts took. */
export interface UsageBucket extends UsageSummary {
  readonly latencies: Latencies;
}

/** How to divide a series: by time, and by further dimensions. */
export interface SeriesOptions {
  /** In UTC. */
  readonly bucket: "hour" | "day";
  /** Default: none. */
  readonly by?: OneOrMany<SummaryDimension>;
}

/** Steps to sum up before yielding to the event loop. */
const stepsPerPage = 250;

/**
 * Sums up Steps, the most expensive row first. Reads hourly sums where the filter allows, and otherwise Steps, page by page:
 * any number of them neither fills the memory nor blocks the store. Each page is read as it is at that moment.
 */
export async function summarize(
  context: GatewayContext,
  ready: () => Promise<void>,
  { filter, by }: { readonly filter: StepFilter; readonly by: OneOrMany<SummaryDimension> },
): Promise<readonly UsageSummary[]> {
  const { groups, dimensions } = await sumUp(context, ready, { filter, by });
  return inTurns(groups.toSorted(compare), rowWriter(dimensions, emptySummary(dimensions)));
}

/** Sums up Steps by time, oldest first, and the most expensive row of a bucket first. */
export async function seriesOf(
  context: GatewayContext,
  ready: () => Promise<void>,
  { filter, options }: { readonly filter: StepFilter; readonly options: SeriesOptions },
): Promise<readonly UsageBucket[]> {
  const { bucket, by = [] } = read(seriesOptions, options, { noun: "option" });
  const { groups, dimensions } = await sumUp(context, ready, {
    filter,
    by: [bucket, ...listed(by)],
  });
  const start = dimensions.indexOf(bucket);
  const buckets = [...Map.groupBy(groups, ({ values }) => values[start])];
  buckets.sort(([a], [b]) => order(a, b));
  /** Sorts each bucket when its turn comes. */
  function* sorted(): Iterable<GrowingGroup> {
    for (const [, found] of buckets) yield* found.sort(compare);
  }
  const empty = { ...emptySummary(dimensions), latencies: latenciesOf([]) };
  const write = rowWriter<Changeable<UsageBucket>>(dimensions, empty);
  return inTurns(sorted(), (group) => {
    const row = write(group);
    row.latencies = latenciesOf(group.figures);
    return row;
  });
}

/** Rows to make before yielding to the event loop. */
const rowsPerTurn = 500;

async function inTurns<From, To>(
  from: Iterable<From>,
  make: (one: From) => To,
): Promise<readonly To[]> {
  const made: To[] = [];
  for (const one of from) if (made.push(make(one)) % rowsPerTurn === 0) await yieldToEventLoop();
  return made;
}

function order(a: string | null = "", b: string | null = ""): number {
  if (a === b) return 0;
  return (a ?? "") < (b ?? "") ? -1 : 1;
}

interface SummedUp {
  readonly groups: readonly GrowingGroup[];
  readonly dimensions: readonly SummaryDimension[];
}

async function sumUp(
  context: GatewayContext,
  ready: () => Promise<void>,
  { filter, by }: { readonly filter: StepFilter; readonly by: OneOrMany<SummaryDimension> },
): Promise<SummedUp> {
  const { query: selection, models: modelPatterns } = readStepFilter(filter, context.dataClasses);
  const { organizationId, ...query } = selection;
  const dimensions = dimensionsOf(by, organizationId);
  await ready();
  let fold = createUsageFold(dimensions);
  for await (const organization of organizationsOf(context.store, organizationId))
    fold = await addAll(context, fold, {
      ...query,
      organizationId: organization,
      by: dimensions,
      ...(modelPatterns === undefined ? {} : { modelPatterns }),
    });
  return { groups: fold.growing, dimensions };
}

/**
 * Adds the Steps of one organization to a fold and returns the whole: whole hours from their sums, and the Steps before and after
 * from their records.
 */
async function addAll(
  context: GatewayContext,
  fold: UsageFold,
  query: OrganizationQuery,
): Promise<UsageFold> {
  const hours = wholeHours(query);
  const mark = hours && (await withStoreErrors(context.store.usage.mark(query.organizationId)));
  if (hours === null || mark === null) return addSteps(context, fold, query);
  const { from, to } = hours;
  // The newest first: a key's label is its latest.
  if (query.to !== undefined && to < query.to)
    await addSteps(context, fold, { ...query, from: to });
  const sums = await sumsByHour(context, { ...query, ...hours }, mark);
  const whole = fold.size === 0 ? sums : fold.addFold(sums);
  requireFewGroups(whole);
  return query.from !== undefined && query.from < from
    ? addSteps(context, whole, { ...query, to: from })
    : whole;
}

async function addSteps(
  { store }: GatewayContext,
  fold: UsageFold,
  query: SummaryQuery,
): Promise<UsageFold> {
  let cursor: string | null = null;
  do {
    const page: SummaryPage = await withStoreErrors(
      store.steps.summarize(query, { cursor, limit: stepsPerPage }),
    );
    for (const group of page.groups) fold.addGroup(group);
    requireFewGroups(fold);
    cursor = page.nextCursor;
    await yieldToEventLoop();
  } while (cursor !== null);
  return fold;
}

function dimensionsOf(
  by: OneOrMany<SummaryDimension>,
  organizationId: string | null,
): readonly SummaryDimension[] {
  const apart: readonly SummaryDimension[] = organizationId === null ? ["organization"] : [];
  return [...new Set([...apart, ...listed(read(dimensionsSchema, by, { path: "by" }))])];
}

function compare(a: GrowingGroup, b: GrowingGroup): number {
  return byCost(a.figures, b.figures) || byValues(a.values, b.values);
}

function byValues(a: UsageGroup["values"], b: UsageGroup["values"]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return order(a[at], b[at]);
}

type Changeable<Row> = { -readonly [Name in keyof Row]: Row[Name] };

/** The row of a group without attempts. */
function emptySummary(dimensions: readonly SummaryDimension[]): Changeable<UsageSummary> {
  const values = Object.fromEntries(dimensions.map((dimension) => [dimension, null]));
  return { ...values, ...(dimensions.includes("key") && { keyLabel: null }), ...noSums };
}

/** Writes rows into copies of an empty one: there may be thousands, and copies are made fastest. */
function rowWriter<Row extends Changeable<UsageSummary>>(
  dimensions: readonly SummaryDimension[],
  empty: Row,
): (group: GrowingGroup) => Row {
  const labels = dimensions.includes("key");
  return ({ values, keyLabel, figures }) => {
    const row = { ...empty };
    const summary: Changeable<UsageSummary> = row;
    dimensions.forEach((dimension, at) => {
      summary[dimension] = values[at] ?? null;
    });
    if (labels) summary.keyLabel = keyLabel;
    writeSums(summary, figures);
    return row;
  };
}
