import type { SummaryPage, SummaryQuery } from "../contracts/usage-summary.ts";
import type { OneOrMany } from "../domain/pattern.ts";
import { listed } from "../domain/pattern.ts";
import { createUsageFold, toGroup, type UsageFold } from "../domain/usage-fold.ts";
import type { Latencies, SummaryDimension, UsageGroup, UsageSums } from "../domain/usage-group.ts";
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
 * Sums up Steps, the most expensive row first. Reads sums by hour where the filter allows, and otherwise Steps, page by page:
 * any number of them neither fills the memory nor blocks the store. Each page is read as it is at that moment.
 */
export async function summarize(
  context: GatewayContext,
  ready: () => Promise<void>,
  { filter, by }: { readonly filter: StepFilter; readonly by: OneOrMany<SummaryDimension> },
): Promise<readonly UsageSummary[]> {
  const { groups, dimensions } = await sumUp(context, ready, { filter, by });
  return inTurns(groups.toSorted(byCost), (group) => toSummary(dimensions, group));
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
  const sorted = buckets.sort(([a], [b]) => order(a, b)).flatMap(([, found]) => found.sort(byCost));
  return inTurns(sorted, (group) => ({
    ...toSummary(dimensions, group),
    latencies: group.latencies,
  }));
}

/** Rows to make before yielding to the event loop. */
const rowsPerTurn = 1_000;

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
  readonly groups: readonly UsageGroup[];
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
  const fold = createUsageFold(dimensions);
  for await (const organization of organizationsOf(context.store, organizationId))
    await addAll(context, fold, {
      ...query,
      organizationId: organization,
      by: dimensions,
      ...(modelPatterns === undefined ? {} : { modelPatterns }),
    });
  return { groups: await inTurns(fold.growing, toGroup), dimensions };
}

/** Adds the Steps of one organization: whole hours from their sums, and the Steps before and after from their records. */
async function addAll(
  context: GatewayContext,
  fold: UsageFold,
  query: OrganizationQuery,
): Promise<void> {
  const hours = wholeHours(query);
  const mark = hours && (await withStoreErrors(context.store.usage.mark(query.organizationId)));
  if (hours === null || mark === null) return addSteps(context, fold, query);
  const { from, to } = hours;
  // The newest first: a key's label is its latest.
  if (query.to !== undefined && to < query.to)
    await addSteps(context, fold, { ...query, from: to });
  fold.addFold(await sumsByHour(context, { ...query, ...hours }, mark));
  requireFewGroups(fold);
  if (query.from !== undefined && query.from < from)
    await addSteps(context, fold, { ...query, to: from });
}

async function addSteps(
  { store }: GatewayContext,
  fold: UsageFold,
  query: SummaryQuery,
): Promise<void> {
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
}

function dimensionsOf(
  by: OneOrMany<SummaryDimension>,
  organizationId: string | null,
): readonly SummaryDimension[] {
  const apart: readonly SummaryDimension[] = organizationId === null ? ["organization"] : [];
  return [...new Set([...apart, ...listed(read(dimensionsSchema, by, { path: "by" }))])];
}

function byCost(a: UsageGroup, b: UsageGroup): number {
  return (
    b.sums.costNanoUsd - a.sums.costNanoUsd ||
    b.sums.totalTokens - a.sums.totalTokens ||
    byValues(a.values, b.values)
  );
}

function byValues(a: UsageGroup["values"], b: UsageGroup["values"]): number {
  for (const [at, value] of a.entries()) {
    const before = order(value, b[at]);
    if (before !== 0) return before;
  }
  return 0;
}

function toSummary(
  dimensions: readonly SummaryDimension[],
  { values, keyLabel, sums }: UsageGroup,
): UsageSummary {
  const found: Partial<Record<SummaryDimension, string | null>> = {};
  for (const [at, dimension] of dimensions.entries()) found[dimension] = values[at] ?? null;
  return dimensions.includes("key") ? { ...found, keyLabel, ...sums } : { ...found, ...sums };
}
