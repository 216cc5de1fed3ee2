import type { KeyOfSecret } from "../contracts/key-repository.ts";
import type { Caller } from "../domain/caller.ts";
import type { Clock } from "../kernel/clock.ts";
import { callerOfKey } from "./caller-of.ts";
import type { NamedCaller } from "./named-caller.ts";

/**
 * Recently read keys, by the full digest of their secret or by the caller the host names. Opening a Step reads the relevant
 * part of a key again.
 */
export interface KeyCache {
  get(name: string): KnownKey | null;
  set(name: string, found: KeyOfSecret): KnownKey;
  drop(name: string): void;
}

/**
 * A key and its caller. The caller stays the same object while the key is cached, so other caches can use it as a key.
 */
export interface KnownKey {
  readonly found: KeyOfSecret;
  readonly caller: Caller;
  /** The callers named by the host for this key. */
  readonly named: WeakMap<NamedCaller, Caller>;
}

const maxKeys = 10_000;
const lifetimeMs = 5_000;

export function createKeyCache(clock: Clock): KeyCache {
  const entries = new Map<string, { readonly known: KnownKey; readonly readAt: number }>();
  return {
    get(name) {
      const entry = entries.get(name);
      if (!entry) return null;
      if (clock.monotonic() - entry.readAt < lifetimeMs) return entry.known;
      entries.delete(name);
      return null;
    },
    set(name, found) {
      const known = { found, caller: callerOfKey(found), named: new WeakMap() };
      if (entries.size >= maxKeys) {
        const oldest = entries.keys().next();
        if (!oldest.done) entries.delete(oldest.value);
      }
      entries.set(name, { known, readAt: clock.monotonic() });
      return known;
    },
    drop: (name) => {
      entries.delete(name);
    },
  };
}
