import type { UnfoldedSteps } from "../contracts/repositories.ts";
import { type FoldedSteps, packSteps } from "../domain/packed-hours.ts";
import type { Step } from "../domain/step.ts";
import { hourOf } from "../domain/usage-fold.ts";
import type { UsageSums } from "../domain/usage-group.ts";
import {
  correctedSteps,
  createHourFold,
  foldedIn,
  type HourDetail,
  type HourFold,
  hourDetails,
  inDetail,
  samePath,
} from "../domain/usage-hours.ts";
import { addFew, type Figures, fewOf, groupOf, noFigures } from "../domain/usage-sums.ts";
import { invalidArgument } from "../errors/gateway-error.ts";
import { read } from "../input/read.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { foldableUntil } from "../pipeline/fold-steps.ts";
import { withStoreErrors } from "./method.ts";
import { usageReconciling } from "./schemas.ts";
import { readStepFilter, type StepFilter } from "./step-filter.ts";
import { organizationsOf, toIso } from "./tenant.ts";

/** The hours to compare. */
export interface UsageReconciliationOptions
  extends Pick<StepFilter, "organizationId" | "from" | "to"> {
  /** Adds the differences to the sums, so that they match. Default: false, which changes nothing. */
  readonly repair?: boolean;
}

/** The result of comparing hourly sums with the Steps. */
export interface UsageReconciliation {
  /** How many Steps were added up. */
  readonly steps: number;
  /** At most 1,000. */
  readonly differences: readonly UsageDifference[];
  /** Whether there are more of them. A repair includes those. */
  readonly isCut: boolean;
  /** How many differences were repaired. */
  readonly repaired: number;
}

/** Sums that differ from the Steps of one hour with the same caller, data class, outcome and models. */
export interface UsageDifference {
  readonly organizationId: string;
  readonly hour: string;
  /** `userId` and `keyId` are empty for the sums over all users and keys together. */
  readonly userId: string;
  readonly keyId: string;
  readonly models: readonly string[];
  /** The figures of the Steps minus those of the sums. Equal figures are 0. */
  readonly missing: UsageSums;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const defaultRangeMs = 30 * dayMs;
const maxDifferences = 1_000;
const perPage = 250;
/** How often to compare hours that differ: a correction or a fold may have happened in between. */
const maxReadings = 4;

/**
 * Adds up all Steps of a range again, day by day, and compares the result with the hourly sums and the Steps that are in none
 * yet. Hours whose Steps retention may have removed are left out, and so are organizations without sums.
 */
export async function reconcileUsage(
  context: GatewayContext,
  options: UsageReconciliationOptions,
): Promise<UsageReconciliation> {
  const { repair = false, ...filter } = read(usageReconciling, options);
  const { organizationId: tenant, from, to } = readStepFilter(filter, context.dataClasses).query;
  const now = context.clock.now();
  if (from === undefined && to !== undefined && to < now - defaultRangeMs)
    throw invalidArgument("from", "`from` must be given if `to` is more than 30 days ago.");
  const { activity } = context.retention;
  // A sweep may run meanwhile.
  const kept = activity === null ? Number.NEGATIVE_INFINITY : hourOf(now - activity) + 2 * hourMs;
  const range = {
    from: hourOf(Math.max(from ?? now - defaultRangeMs, kept)),
    to: hourOf(Math.min(to ?? now, foldableUntil(now))),
  };
  const differences: UsageDifference[] = [];
  let [steps, repaired, isCut] = [0, 0, false];
  for await (const organizationId of organizationsOf(context.store, tenant))
    for (let day = range.from; day < range.to; day += dayMs) {
      const hours = { organizationId, from: day, to: Math.min(day + dayMs, range.to) };
      const compared = await compareUntilSteady(context, hours, repair);
      steps += compared.steps;
      repaired += compared.repaired;
      for (const found of compared.differences)
        if (differences.length < maxDifferences) differences.push(described(found));
        else isCut = true;
      await yieldToEventLoop();
    }
  return { steps, differences, isCut, repaired };
}

interface Hours {
  readonly organizationId: string;
  readonly from: number;
  readonly to: number;
}

/** The Steps of one hour and path minus their sums. */
interface Difference extends FoldedSteps {
  readonly detail: HourDetail;
  readonly hour: number;
}

interface Compared {
  readonly steps: number;
  readonly mark: string | null;
  readonly differences: readonly Difference[];
}

/** A difference counts once two readings agree on it. */
async function compareUntilSteady(
  context: GatewayContext,
  hours: Hours,
  repair: boolean,
): Promise<Compared & { readonly repaired: number }> {
  let compared = await compare(context, hours);
  for (let reading = 1; reading < maxReadings && compared.differences.length > 0; reading++) {
    const again = await compare(context, hours);
    const isSteady = JSON.stringify(again.differences) === JSON.stringify(compared.differences);
    compared = again;
    if (!isSteady) continue;
    if (!repair) break;
    if (await addMissing(context, hours, compared))
      return { ...compared, repaired: compared.differences.length };
  }
  return { ...compared, repaired: 0 };
}

/** Rows never change: a difference is a separate row. */
function addMissing(
  { store, ids }: GatewayContext,
  { organizationId }: Hours,
  { mark, differences }: Compared,
): Promise<boolean> {
  if (mark === null) return Promise.resolve(false);
  const rows = Map.groupBy(differences, ({ detail, hour }) => `${detail} ${hour}`);
  const hours = [...rows.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const { detail, hour } = first;
    return {
      organizationId,
      detail,
      hour,
      id: ids.uuid(),
      ...packSteps(hour, [first, ...others]),
    };
  });
  return withStoreErrors(store.usage.add({ organizationId, after: mark, mark, hours }));
}

async function compare({ store }: GatewayContext, range: Hours): Promise<Compared> {
  const { organizationId } = range;
  const mark = await withStoreErrors(store.usage.mark(organizationId));
  if (mark === null) return { steps: 0, mark, differences: [] };
  const balance = createBalance();
  for (const detail of hourDetails)
    for await (const row of pagesOf((cursor) =>
      store.usage.hours({ ...range, detail }, { cursor, limit: perPage / 5 }),
    ))
      for (const steps of foldedIn(row)) balance.add({ detail, hour: row.hour }, steps, -1);
  const [behind, all] = [createFolds(), createFolds()];
  for (let cursor = mark; ; ) {
    const { steps, cursorOf }: UnfoldedSteps = await withStoreErrors(
      store.usage.steps({ organizationId, to: range.to }, { cursor, limit: perPage }),
    );
    for (const step of steps)
      if (step.openedAt >= range.from) behind.of(hourOf(step.openedAt)).add(step);
    if (steps.length < perPage) break;
    cursor = cursorOf(steps.length - 1);
    await yieldToEventLoop();
  }
  let count = 0;
  const list = (cursor: string | null) => store.steps.list(range, { cursor, limit: perPage });
  for await (const step of pagesOf<Step>(list)) {
    count++;
    const hour = hourOf(step.openedAt);
    all.of(hour).add(step);
    for (const corrected of correctedSteps(step)) balance.addAll(hour, corrected, 1);
  }
  for (const [hour, fold] of behind.all())
    for (const of of fold.steps()) balance.addAll(hour, of, -1);
  for (const [hour, fold] of all.all()) for (const of of fold.steps()) balance.addAll(hour, of, 1);
  return { steps: count, mark, differences: balance.rest() };
}

async function* pagesOf<Row>(
  read: (
    cursor: string | null,
  ) => Promise<{ readonly data: readonly Row[]; readonly nextCursor: string | null }>,
): AsyncGenerator<Row> {
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof read>> = await withStoreErrors(read(cursor));
    yield* page.data;
    cursor = page.nextCursor;
    await yieldToEventLoop();
  } while (cursor !== null);
}

function createFolds() {
  const folds = new Map<number, HourFold>();
  return {
    of(hour: number): HourFold {
      const fold = folds.get(hour) ?? createHourFold();
      folds.set(hour, fold);
      return fold;
    },
    all: () => folds,
  };
}

interface Row {
  readonly detail: HourDetail;
  readonly hour: number;
}

/** Adds Steps and subtracts sums, by detail, hour, caller and path. */
function createBalance() {
  const entries = new Map<
    string,
    { row: Row; steps: FoldedSteps; count: number; openedAt: number; figures: Figures[] }
  >();
  const add = (row: Row, steps: FoldedSteps, sign: 1 | -1): void => {
    const name = JSON.stringify([row.detail, row.hour, samePath(steps)]);
    const { openedAt } = steps;
    const entry = entries.get(name) ?? {
      ...{ row, steps, count: 0, openedAt, figures: steps.places.map(noFigures) },
    };
    entries.set(name, entry);
    entry.count += sign * steps.count;
    entry.openedAt = Math.max(entry.openedAt, openedAt);
    for (const [at, place] of steps.places.entries())
      addFew(entry.figures[at] ?? [], place.figures, sign);
  };
  return {
    add,
    addAll(hour: number, steps: FoldedSteps, sign: 1 | -1): void {
      for (const detail of hourDetails) add({ detail, hour }, inDetail(detail, steps), sign);
    },
    rest: (): readonly Difference[] =>
      [...entries.values()].flatMap(({ row, steps, count, openedAt, figures }) => {
        const places = steps.places.map((place, at) => ({
          ...{ ...place, figures: fewOf(figures[at] ?? []) },
        }));
        const isEven = count === 0 && places.every((place) => place.figures.length === 0);
        return isEven ? [] : [{ ...steps, ...row, count, openedAt, places }];
      }),
  };
}

function described({
  organizationId,
  hour,
  userId,
  keyId,
  count,
  places,
}: Difference): UsageDifference {
  const figures = noFigures();
  for (const place of places) addFew(figures, place.figures);
  return {
    ...{ organizationId, hour: toIso(hour), userId, keyId },
    models: places.map(({ gateway, vendor, model }) => `${gateway}/${vendor}/${model}`),
    missing: { ...groupOf(figures).sums, steps: count },
  };
}
