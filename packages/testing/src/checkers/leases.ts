import type { StoreDump } from "./dump.ts";

/** Checks that every open Step has a live process that will settle it. */
export function checkLeases({ lapsedSteps }: StoreDump): readonly string[] {
  return lapsedSteps.map((id) => `Step ${id}: it is open, and no process will settle it`);
}

/** Checks that nothing is running: no Step is open and nothing is held. */
export function checkQuiet({ steps, counters }: StoreDump): readonly string[] {
  return [
    ...steps.filter(({ outcome }) => outcome === null).map(({ id }) => `Step ${id}: it is open`),
    ...counters
      .filter(({ held }) => held !== 0)
      .map(({ budgetId, subject, held }) => `Counter ${budgetId} ${subject}: ${held} held`),
  ];
}
