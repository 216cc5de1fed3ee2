import type { FoundSecret } from "../contracts/key-repository.ts";
import type { Clock } from "../kernel/clock.ts";

/**
 * Keys read a moment ago, by the full digest of their secret, or by the caller the host names. Opening a Step re-reads
 * what matters of a key.
 */
export interface KeyCache {
  get(name: string): FoundSecret | null;
  set(name: string, known: FoundSecret): void;
  drop(name: string): void;
}

const bound = 10_000;
const lifetimeMs = 5_000;

export function createKeyCache(clock: Clock): KeyCache {
  const entries = new Map<string, { readonly known: FoundSecret; readonly readAt: number }>();
  return {
    get(name) {
      const entry = entries.get(name);
      if (!entry) return null;
      if (clock.monotonic() - entry.readAt < lifetimeMs) return entry.known;
      entries.delete(name);
      return null;
    },
    set(name, known) {
      if (entries.size >= bound) {
        const oldest = entries.keys().next();
        if (!oldest.done) entries.delete(oldest.value);
      }
      entries.set(name, { known, readAt: clock.monotonic() });
    },
    drop: (name) => {
      entries.delete(name);
    },
  };
}
