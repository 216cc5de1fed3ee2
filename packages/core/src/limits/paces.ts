import type { Clock } from "../kernel/clock.ts";

/** Limits how often each owner does something in this process. */
export interface Paces {
  /** Counts one more time. Returns null, or if that is too often, the milliseconds until it isn't. */
  take(owner: string): number | null;
}

/** At most `burst` times at once, and then once every `interval` milliseconds. Remembers `maxOwners`, the latest ones. */
export function createPaces(
  clock: Clock,
  bounds: { readonly burst: number; readonly interval: number; readonly maxOwners: number },
): Paces {
  const { burst, interval, maxOwners } = bounds;
  const usedUntil = new Map<string, number>();
  return {
    take(owner) {
      const now = clock.monotonic();
      const next = Math.max(usedUntil.get(owner) ?? 0, now) + interval;
      const wait = next - now - burst * interval;
      if (wait > 0) return wait;
      usedUntil.delete(owner);
      usedUntil.set(owner, next);
      const [oldest] = usedUntil.keys();
      if (usedUntil.size > maxOwners && oldest !== undefined) usedUntil.delete(oldest);
      return null;
    },
  };
}
