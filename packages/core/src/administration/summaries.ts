import type { SummaryPage, SummaryQuery } from "../contracts/usage-summary.ts";
import type { OneOrMany } from "../domain/pattern.ts";
import { listed } from "../domain/pattern.ts";
import { createUsageFold, type UsageFold } from "../domain/usage-fold.ts";
import type { SummaryDimension, UsageGroup, UsageSums } from "../domain/usage-group.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { read } from "../input/read.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { withStoreErrors } from "./method.ts";
import { dimensionsSchema } from "./schemas.ts";
import { readStepFilter, type StepFilter } from "./step-filter.ts";
import { organizationsOf } from "./tenant.ts";

/**
 * One row of a summary: its value of each requested dimension, and its sums. Rows by key include the key's label, from its
 * newest Step. Across organizations, `organization` is always one of the dimensions.
 */
export interface UsageSummary
  extends UsageSums,
    Readonly<Partial<Record<SummaryDimension, string | null>>> {
  readonly keyLabel?: string | null;
}

/** The maximum number of rows. */
const maxGroups = 10_000;
/** Steps to sum up before yielding to the event loop. */
const stepsPerPage = 1_000;

/**
 * Sums up Steps, the most expensive row first. Reads Steps page by page, so any number of them neither fills the memory nor
 * blocks the store. Each page is read as it is at that moment.
 */
export async function summarize(
  context: GatewayContext,
  ready: () => Promise<void>,
  { filter, by }: { readonly filter: StepFilter; readonly by: OneOrMany<SummaryDimension> },
): Promise<readonly UsageSummary[]> {
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
  return fold
    .groups()
    .toSorted(byCost)
    .map((group) => toSummary(dimensions, group));
}

async function addAll(
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
    if (fold.size > maxGroups) throw tooManyGroups();
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
    (JSON.stringify(a.values) < JSON.stringify(b.values) ? -1 : 1)
  );
}

function toSummary(
  dimensions: readonly SummaryDimension[],
  { values, keyLabel, sums }: UsageGroup,
): UsageSummary {
  return {
    ...Object.fromEntries(dimensions.map((dimension, at) => [dimension, values[at]])),
    ...(dimensions.includes("key") ? { keyLabel } : {}),
    ...sums,
  };
}

function tooManyGroups(): GatewayError {
  return new GatewayError(
    "invalid_argument",
    `The summary has more than ${maxGroups} rows: select a shorter time, or use fewer dimensions in \`by\`.`,
    { param: "by" },
  );
}
