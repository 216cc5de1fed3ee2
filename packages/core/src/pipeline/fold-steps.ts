import type { UnfoldedSteps } from "../contracts/repositories.ts";
import { hourOf } from "../domain/usage-fold.ts";
import { createHourFold, type HourFold, usageHours } from "../domain/usage-hours.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "./context.ts";
import { unrecorded } from "./store-calls.ts";

/** The result of folding Steps into hourly sums. */
interface Folded {
  readonly count: number;
  /** Organizations whose Steps aren't folded from this time on, although they opened before `until`. */
  readonly unfolded: ReadonlyMap<string, number>;
  /** The first failure of an organization's folding, or null. */
  readonly failure: unknown;
}

interface FoldOptions {
  /** Only Steps that opened before this time are folded. */
  readonly until: number;
  readonly isStopped: () => boolean;
}

/** Steps are folded an hour after their own hour, so that a clock may be behind by less. */
const lagMs = 3_600_000;
const organizationsPerPage = 200;

/** The end of the hours that are folded now. */
export function foldableUntil(now: number): number {
  return hourOf(now - lagMs);
}

/**
 * Folds the settled Steps of all organizations, oldest first. An open Step ends the folding of its organization until it is
 * settled, and a Step that can't be read does so for good. Several processes may fold at once: each Step is folded once.
 */
export async function foldSteps(
  context: GatewayContext,
  { until, isStopped }: FoldOptions,
): Promise<Folded> {
  const unfolded = new Map<string, number>();
  let failure: unknown = null;
  let count = 0;
  for (let after = ""; ; ) {
    const limit = organizationsPerPage;
    const { organizations, next } = await context.store.usage.unfolded({ after, until, limit });
    for (const organizationId of organizations) {
      try {
        const folded = await foldOrganization(context, organizationId, { until, isStopped });
        count += folded.count;
        if (folded.openSince !== null) unfolded.set(organizationId, folded.openSince);
      } catch (thrown) {
        unfolded.set(organizationId, Number.MIN_SAFE_INTEGER);
        failure ??= unrecorded(thrown);
      }
      if (isStopped()) break;
      // A store may answer and write without a turn of the event loop.
      await yieldToEventLoop();
    }
    if (isStopped() || next === null) return { count, unfolded, failure };
    after = next;
    await yieldToEventLoop();
  }
}

async function foldOrganization(
  { store, ids }: GatewayContext,
  organizationId: string,
  { until, isStopped }: FoldOptions,
): Promise<Pick<FoldBatch, "count" | "openSince">> {
  let count = 0;
  for (;;) {
    const after = await store.usage.mark(organizationId);
    const batch = await readBatch({ store }, { organizationId, to: until }, after);
    const { mark, isLast, openSince } = batch;
    if (mark !== null && mark !== after) {
      const hours = [...batch.hours].flatMap(([hour, fold]) =>
        usageHours({ organizationId, hour, id: ids.uuid() }, fold.steps()),
      );
      const isAdded = await store.usage.add({ organizationId, after, mark, hours });
      // If it isn't, another process folded them: continue after its mark.
      if (isAdded) count += batch.count;
      else continue;
    }
    if (isLast || isStopped()) return { count, openSince };
  }
}

/** Steps that are written together. Their bounds keep memory, rows and each write small. */
interface FoldBatch {
  readonly hours: ReadonlyMap<number, HourFold>;
  readonly count: number;
  /** The cursor of the last Step; null if there is none. */
  readonly mark: string | null;
  readonly isLast: boolean;
  /** When the open Step that ends it opened; null if none ends it. */
  readonly openSince: number | null;
}

const stepsPerPage = 250;
const maxSteps = 20_000;
const maxHours = 100;
const maxGroups = 500;

async function readBatch(
  { store }: Pick<GatewayContext, "store">,
  query: { readonly organizationId: string; readonly to: number },
  after: string | null,
): Promise<FoldBatch> {
  const hours = new Map<number, HourFold>();
  let [count, mark, groups] = [0, after, 0];
  for (;;) {
    const paging = { cursor: mark, limit: stepsPerPage };
    const { steps, cursorOf }: UnfoldedSteps = await store.usage.steps(query, paging);
    let openSince: number | null = null;
    let settled = 0;
    for (const step of steps) {
      if (step.outcome === null) openSince = step.openedAt;
      if (openSince !== null || groups >= maxGroups || hours.size >= maxHours) break;
      const hour = hourOf(step.openedAt);
      const fold = hours.get(hour) ?? createHourFold();
      hours.set(hour, fold);
      const size = fold.size;
      fold.add(step);
      groups += fold.size - size;
      settled++;
    }
    count += settled;
    if (settled > 0) mark = cursorOf(settled - 1);
    const isLast = openSince !== null || (settled === steps.length && settled < stepsPerPage);
    const isFull = settled < steps.length || count >= maxSteps;
    if (isLast || isFull) return { hours, count, mark, isLast, openSince };
    await yieldToEventLoop();
  }
}
