import type { StoreDump } from "./dump.ts";

/** Every open Step has a process that lives and will settle it. */
export function checkLeases({ lapsedSteps }: StoreDump): readonly string[] {
  return lapsedSteps.map((id) => `Step ${id}: it is open, and no process will settle it`);
}

/** Nothing runs any more: no Step is open and nothing is held. */
export function checkQuiet({ steps, counters }: StoreDump): readonly string[] {
  return [
    ...steps.filter(({ outcome }) => outcome === null).map(({ id }) => `Step ${id}: it is open`),
    ...counters
      .filter(({ held }) => held !== 0)
      .map(({ budgetId, subject, held }) => `Counter ${budgetId} ${subject}: ${held} held`),
  ];
}
