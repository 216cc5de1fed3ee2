const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const pattern = /^(\d{1,12})(ms|s|m|h|d)$/;

/** A length of time: milliseconds, or a whole number with a unit such as `"30d"`, `"24h"`, `"90s"`. */
export type Duration = number | `${number}${keyof typeof units}`;

/** A duration in milliseconds; null if it isn't valid. */
export function parseDuration(duration: Duration | string): number | null {
  if (typeof duration === "number")
    return Number.isSafeInteger(duration) && duration >= 0 ? duration : null;
  const match = pattern.exec(duration);
  if (!match) return null;
  const milliseconds = Number(match[1]) * units[match[2] as keyof typeof units];
  return Number.isSafeInteger(milliseconds) ? milliseconds : null;
}
