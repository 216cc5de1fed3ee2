import type { UnfoldedSteps } from "../contracts/repositories.ts";
import type { SummaryQuery } from "../contracts/usage-summary.ts";
import type { HourCaller } from "../domain/packed-hours.ts";
import {
  createUsageFold,
  hourOf,
  type UnfoldedStep,
  type UsageFold,
} from "../domain/usage-fold.ts";
import type { SummaryDimension } from "../domain/usage-group.ts";
import type { HourDetail, UsageHour } from "../domain/usage-hours.ts";
import { invalidArgument } from "../errors/gateway-error.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { withStoreErrors } from "./method.ts";

/** The Steps of one organization to sum up. */
export interface OrganizationQuery extends SummaryQuery {
  readonly organizationId: string;
}

/** A range of whole hours. */
interface Hours {
  readonly from: number;
  readonly to: number;
}

const hourMs = 3_600_000;

/** The members of a query that hourly sums can answer. */
const selectable: ReadonlySet<string> = new Set<keyof SummaryQuery>([
  ...(["organizationId", "by", "from", "to", "userId", "keyId", "source", "dataClass"] as const),
  ...(["outcome", "gateway", "vendor", "model", "modelPatterns", "connection"] as const),
]);

const notKept: ReadonlySet<SummaryDimension> = new Set<SummaryDimension>(["session", "host"]);

/** The whole hours of a query's time, if hourly sums can answer it; null otherwise. */
export function wholeHours(query: OrganizationQuery): Hours | null {
  if (!Object.keys(query).every((name) => selectable.has(name))) return null;
  if (query.by.some((dimension) => notKept.has(dimension))) return null;
  const from = query.from === undefined ? Number.MIN_SAFE_INTEGER : hourOf(query.from + hourMs - 1);
  const to = query.to === undefined ? Number.MAX_SAFE_INTEGER : hourOf(query.to);
  return from < to ? { from, to } : null;
}

/** The bytes of sums to add before yielding to the event loop, and the rows to ask for at once. */
const bytesPerTurn = 50_000;
const rowsPerPage: Readonly<Record<HourDetail, number>> = { callers: 200, totals: 500 };
const stepsPerPage = 250;

/**
 * Adds up whole hours: their sums, and the Steps after the mark. If another process moves the mark meanwhile, the sums are
 * read again.
 */
export async function sumsByHour(
  context: GatewayContext,
  query: OrganizationQuery & Hours,
  firstMark: string,
): Promise<UsageFold> {
  for (let mark = firstMark; ; ) {
    const fold = createUsageFold(query.by, query);
    for await (const row of hoursOf(context, query)) {
      fold.addHour(row, (caller) => matches(query, caller));
      requireFewGroups(fold);
    }
    const after = await withStoreErrors(context.store.usage.mark(query.organizationId));
    if (after === null || after === mark) {
      for await (const steps of stepsBehind(context, query, mark)) {
        for (const step of steps)
          if (step.openedAt >= query.from && matches(query, step)) fold.addStep(step);
        requireFewGroups(fold);
      }
      return fold;
    }
    mark = after;
  }
}

function detailOf({ by, userId, keyId }: SummaryQuery): HourDetail {
  const asksCallers = by.includes("user") || by.includes("key");
  return asksCallers || userId !== undefined || keyId !== undefined ? "callers" : "totals";
}

async function* hoursOf(
  { store }: GatewayContext,
  query: OrganizationQuery & Hours,
): AsyncGenerator<UsageHour> {
  const { organizationId, from, to } = query;
  const detail = detailOf(query);
  const limit = rowsPerPage[detail];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof store.usage.hours>> = await withStoreErrors(
      store.usage.hours({ organizationId, detail, from, to }, { cursor, limit }),
    );
    let added = 0;
    for (const row of page.data) {
      yield row;
      added += row.figures.length;
      if (added < bytesPerTurn) continue;
      added = 0;
      await yieldToEventLoop();
    }
    cursor = page.nextCursor;
    // SQLite reads a page at once.
    await yieldToEventLoop();
  } while (cursor !== null);
}

/** The Steps that are in no hour yet, as first recorded: the hours have their corrections. */
async function* stepsBehind(
  { store }: GatewayContext,
  { organizationId, to }: OrganizationQuery & Hours,
  mark: string,
): AsyncGenerator<readonly UnfoldedStep[]> {
  for (let cursor = mark; ; ) {
    const paging = { cursor, limit: stepsPerPage };
    const { steps, cursorOf }: UnfoldedSteps = await withStoreErrors(
      store.usage.steps({ organizationId, to }, paging),
    );
    yield steps;
    if (steps.length < stepsPerPage) return;
    cursor = cursorOf(steps.length - 1);
    await yieldToEventLoop();
  }
}

function matches(
  query: SummaryQuery,
  step: Omit<HourCaller, "organizationId" | "keyLabel">,
): boolean {
  return (
    (query.userId?.includes(step.userId) ?? true) &&
    (query.keyId?.includes(step.keyId) ?? true) &&
    (query.source?.includes(step.source) ?? true) &&
    (query.dataClass?.includes(step.dataClass) ?? true) &&
    (query.outcome?.includes(step.outcome ?? "open") ?? true)
  );
}

/** The maximum number of rows. */
const maxGroups = 10_000;

/** @throws GatewayError `invalid_argument` as soon as a summary has too many rows, before they fill the memory */
export function requireFewGroups({ size }: Pick<UsageFold, "size">): void {
  if (size <= maxGroups) return;
  throw invalidArgument(
    "by",
    `The summary has more than ${maxGroups} rows: select a shorter time, or use fewer dimensions in \`by\`.`,
  );
}
