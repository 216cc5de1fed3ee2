import type { StoreDump } from "./dump.ts";

/** There is one activity record for each completed Step, and none for any other. */
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
