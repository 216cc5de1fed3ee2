import { createUsageFold, type UsageGroup } from "@tollgate/core/store";
import type { StoreDump } from "./dump.ts";
import { addInBoth, rolledUpBy } from "./rolled-up.ts";

/** Checks that hourly sums, by caller and without callers, add up to the sums over all Steps. Organizations whose Steps retention removed are left out. */
export function checkUsageHours({ steps, leaves, usage }: StoreDump): readonly string[] {
  const swept = new Set(
    leaves.flatMap(({ kind, organizationId }) =>
      kind === "activity.removed" ? [organizationId] : [],
    ),
  );
  const fold = createUsageFold(rolledUpBy);
  for (const step of steps) addInBoth(fold, step);
  const recorded = new Map(fold.groups().map((group) => [nameOf(group), figuresOf(group)]));
  const summed = new Map(usage.map((group) => [nameOf(group), figuresOf(group)]));
  return [...new Set([...recorded.keys(), ...summed.keys()])].flatMap((name) => {
    const [organizationId = ""]: readonly string[] = JSON.parse(name);
    const [expected, found] = [recorded.get(name), summed.get(name)];
    return swept.has(organizationId) || expected === found
      ? []
      : [`Hourly sums of ${name}: ${found}, but its Steps add up to ${expected}`];
  });
}

function nameOf({ values }: UsageGroup): string {
  return JSON.stringify(values);
}

function figuresOf({ sums, latencies }: UsageGroup): string {
  return JSON.stringify([sums, latencies]);
}
