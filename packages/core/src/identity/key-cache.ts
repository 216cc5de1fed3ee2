import type { ApiKey } from "../domain/api-key.ts";
import type { Clock } from "../kernel/clock.ts";

/** A key as it was read, and its organization's salt. */
export interface KnownKey {
  readonly key: ApiKey;
  readonly salt: Uint8Array;
}

/** Keys read a moment ago, by the full digest of their secret. Opening a Step re-reads what matters of a key. */
export interface KeyCache {
  get(digestHex: string): KnownKey | null;
  set(digestHex: string, known: KnownKey): void;
  drop(digestHex: string): void;
}

const bound = 10_000;
const lifetimeMs = 5_000;

export function createKeyCache(clock: Clock): KeyCache {
  const entries = new Map<string, { readonly known: KnownKey; readonly readAt: number }>();
  return {
    get(digestHex) {
      const entry = entries.get(digestHex);
      if (!entry) return null;
      if (clock.monotonic() - entry.readAt < lifetimeMs) return entry.known;
      entries.delete(digestHex);
      return null;
    },
    set(digestHex, known) {
      if (entries.size >= bound) {
        const oldest = entries.keys().next();
        if (!oldest.done) entries.delete(oldest.value);
      }
      entries.set(digestHex, { known, readAt: clock.monotonic() });
    },
    drop: (digestHex) => {
      entries.delete(digestHex);
    },
  };
}
