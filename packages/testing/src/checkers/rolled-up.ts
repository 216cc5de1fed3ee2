import {
  createUsageFold,
  foldedFromText,
  type Store,
  type SummaryDimension,
  type UnfoldedSteps,
  type UsageFold,
  type UsageGroup,
} from "@tollgate/core/store";
import { everyRow } from "./every-row.ts";

/** The dimensions in which sums by hour are checked. */
export const rolledUpBy: readonly SummaryDimension[] = [
  "organization",
  "user",
  "key",
  "model",
  "outcome",
  "hour",
];
const stepsPerPage = 1_000;

/** The sums over all Steps of some organizations: those by hour, and the Steps behind each mark. */
export async function rolledUp(
  store: Store,
  organizations: readonly string[],
): Promise<readonly UsageGroup[]> {
  const fold = createUsageFold(rolledUpBy);
  for (const organizationId of organizations) await addRolledUp(store, organizationId, fold);
  return fold.groups();
}

async function addRolledUp(store: Store, organizationId: string, fold: UsageFold): Promise<void> {
  for (const row of await everyRow((paging) => store.usage.hours({ organizationId }, paging)))
    for (const steps of foldedFromText(row)) fold.addSteps(steps);
  let cursor = await store.usage.mark(organizationId);
  for (;;) {
    const paging = { cursor, limit: stepsPerPage };
    const { steps, cursorOf }: UnfoldedSteps = await store.usage.steps({ organizationId }, paging);
    for (const step of steps) fold.addStep(step);
    if (steps.length < stepsPerPage) return;
    cursor = cursorOf(steps.length - 1);
  }
}
