import {
  createUsageFold,
  hourDetails,
  inDetail,
  type Store,
  type SummaryDimension,
  type UnfoldedStep,
  type UnfoldedSteps,
  type UsageFold,
  type UsageGroup,
} from "@tollgate/core/store";
import { everyRow } from "./every-row.ts";

/** The dimensions in which hourly sums are checked. */
export const rolledUpBy: readonly SummaryDimension[] = [
  "organization",
  "user",
  "key",
  "model",
  "outcome",
  "hour",
];
const stepsPerPage = 1_000;

/**
 * The sums over all Steps of some organizations, by caller and without callers: those by hour, and the Steps after each mark.
 */
export async function rolledUp(
  store: Store,
  organizations: readonly string[],
): Promise<readonly UsageGroup[]> {
  const fold = createUsageFold(rolledUpBy);
  for (const organizationId of organizations) await addRolledUp(store, organizationId, fold);
  return fold.groups();
}

async function addRolledUp(store: Store, organizationId: string, fold: UsageFold): Promise<void> {
  for (const detail of hourDetails) {
    const hours = { organizationId, detail };
    for (const row of await everyRow((paging) => store.usage.hours(hours, paging)))
      fold.addHour(row);
  }
  let cursor = await store.usage.mark(organizationId);
  for (;;) {
    const paging = { cursor, limit: stepsPerPage };
    const { steps, cursorOf }: UnfoldedSteps = await store.usage.steps({ organizationId }, paging);
    for (const step of steps) addInBoth(fold, step);
    if (steps.length < stepsPerPage) return;
    cursor = cursorOf(steps.length - 1);
  }
}

/** Adds a Step as the sums of each detail see it. */
export function addInBoth(fold: UsageFold, step: UnfoldedStep): void {
  for (const detail of hourDetails) fold.addStep(inDetail(detail, step));
}
