import { defaultRetention, type Retention } from "./domain/retention.ts";
import { type Duration, parseDuration } from "./kernel/duration.ts";

/** What the option says, and what is wrong with it. Activity kept for no time at all would be gone before it is read. */
export function readRetention(written: Partial<Record<string, Duration>>): {
  readonly retention: Retention;
  readonly problems: readonly string[];
} {
  const entries = Object.entries(written).map(
    ([name, duration]) => [name, parseDuration(duration ?? "")] as const,
  );
  const problems = entries
    .filter(
      ([name, milliseconds]) =>
        !Object.hasOwn(defaultRetention, name) ||
        milliseconds === null ||
        (milliseconds === 0 && name !== "responses"),
    )
    .map(([name]) => `retention.${name} is not a duration such as "30d".`);
  return { retention: { ...defaultRetention, ...Object.fromEntries(entries) }, problems };
}
