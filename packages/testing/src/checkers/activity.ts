import type { StoreDump } from "./dump.ts";

/** Checks that every completed Step has one activity record, and other Steps have none. */
export function checkActivity({ steps, activity }: StoreDump): readonly string[] {
  const completed = new Set(
    steps.filter(({ outcome }) => outcome === "completed").map(({ id }) => id),
  );
  const recorded = new Set(activity);
  return [
    ...(recorded.size === activity.length ? [] : ["a Step has two activity records"]),
    ...[...completed]
      .filter((id) => !recorded.has(id))
      .map((id) => `Step ${id}: completed without activity`),
    ...[...recorded]
      .filter((id) => !completed.has(id))
      .map((id) => `Step ${id}: activity, but not completed`),
  ];
}
