import type { Owner } from "@tollgate/core/store";
import { chainHead, chainLength, type SessionState } from "@tollgate/store-engine";
import { maxCandidates } from "../statements/open-step.ts";
import { createSlots } from "./slots.ts";

/** The Sessions that a key's requests may continue. */
export interface KnownRecent {
  /**
   * The ids of those that a history begins with, without any that is in flight and as long; null where they are to be
   * looked for.
   */
  matches(place: RecentPlace, chain: Uint8Array): readonly string[] | null;
  /** A Session is its key's most recently updated one now; `before` is the number of its update before, 0 for a new one. */
  touch(session: SessionState, before: number): void;
  clear(): void;
}

interface RecentPlace {
  readonly owner: Owner;
  readonly source: string;
}

interface Recent {
  readonly organizationId: string;
  /** How often they were asked for. */
  asked: number;
  /** Oldest update first; null before they are known. */
  sessions: Known[] | null;
}

/** As little as it takes: each outlives the request that it is of. */
type Known = Pick<SessionState, "id" | "head" | "length" | "inFlight" | "updated">;

/**
 * Knows those of a key from the time on that it was asked for them `worthKnowing` times, beginning with those that
 * `readAll` gives, most recently updated first.
 */
export function createKnownRecent(
  worthKnowing: number,
  readAll: (place: RecentPlace) => readonly SessionState[],
): KnownRecent {
  const slots = createSlots<Recent>();
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
      // By number: ids of one time differ in their last characters only.
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

/** Those whose head is the chain's value at their length. */
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
