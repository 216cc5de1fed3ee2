import type { Owner } from "@tollgate/core/store";
import { chainHead, chainLength, type SessionState } from "@tollgate/store-engine";
import { maxCandidates } from "../statements/open-step.ts";
import { createSlots } from "./slots.ts";

/** The Sessions that a key's requests may continue. */
export interface KnownRecent {
  /**
   * The ids of the Sessions that the chain of a history begins with, except a Session in flight of the same length.
   * Null if the caller must search the database.
   */
  matches(place: RecentPlace, chain: Uint8Array): readonly string[] | null;
  /**
   * Makes a Session its key's most recently updated one. `before` is the number of its previous update, 0 for a new
   * Session.
   */
  touch(session: SessionState, before: number): void;
  clear(): void;
}

interface RecentPlace {
  readonly owner: Owner;
  readonly source: string;
}

interface Recent {
  readonly organizationId: string;
  /** How often `matches` was called. */
  asked: number;
  /** Oldest update first; null until they are read. */
  sessions: Known[] | null;
}

/** Keeps only a few fields, because the entry outlives its request. */
type Known = Pick<SessionState, "id" | "head" | "length" | "inFlight" | "updated">;

/**
 * Caches a key's Sessions once it was asked for them more than `worthKnowing` times. `readAll` reads the first ones,
 * most recently updated first.
 */
export function createKnownRecent(
  worthKnowing: number,
  readAll: (place: RecentPlace) => readonly SessionState[],
): KnownRecent {
  const slots = createSlots<Recent>(1);
  const find = (organizationId: string, keyId: string, source: string): Recent | null => {
    const recent = slots.get(keyId, source);
    return recent?.organizationId === organizationId ? recent : null;
  };
  return {
    matches(place, chain) {
      const { organizationId, keyId } = place.owner;
      const recent = find(organizationId, keyId, place.source) ?? {
        organizationId,
        asked: 0,
        sessions: null,
      };
      if (recent.asked === 0) slots.set(keyId, place.source, recent);
      if (++recent.asked <= worthKnowing) return null;
      recent.sessions ??= readAll(place).map(knownOf).reverse();
      return matching(recent.sessions, chain).map(({ id }) => id);
    },
    touch(session, before) {
      const sessions = find(session.organizationId, session.keyId, session.source)?.sessions;
      if (!sessions) return;
      // Compares numbers, because ids of the same time differ only in their last characters.
      const place = before === 0 ? -1 : sessions.findLastIndex(({ updated }) => updated === before);
      if (place >= 0) sessions.splice(place, 1);
      sessions.push(knownOf(session));
      if (sessions.length > maxCandidates) sessions.shift();
    },
    clear: slots.clear,
  };
}

function knownOf({ id, head, length, inFlight, updated }: SessionState): Known {
  return { id, head, length, inFlight, updated };
}

/** The Sessions whose head equals the chain's value at their length. */
function matching(sessions: readonly Known[], chain: Uint8Array): readonly Known[] {
  const most = chainLength(chain);
  const values: string[] = [];
  const valueAt = (length: number): string => {
    values[length] ??= chainHead(chain, length);
    return values[length];
  };
  return sessions.filter(
    ({ head, length, inFlight }) =>
      length > 0 && length <= most && head === valueAt(length) && !(inFlight && length === most),
  );
}
