import type { Administration, Clock } from "@tollgate/core";
import { type List, listOf, type Paging } from "@tollgate/core/administration";

/** Reads rest this many times as long as they took, so that they take at most a quarter of the process's time. */
const restFactor = 3;
const maxRestMs = 1_000;
/** Rests up to this long are put off: a few short reads, one after the other, don't wait. */
const allowanceMs = 100;
/** A read that takes longer no longer keeps others waiting. */
const maxTurnMs = 1_000;
/** A shorter rest isn't worth a timer. */
const minRestMs = 2;

/** Rests for the time that a read has taken since it began or last rested. */
type Rest = () => Promise<void>;

/** Gives reads their turn, one after the other. */
export type TakeTurn = <Result>(read: (rest: Rest) => PromiseLike<Result>) => Promise<Result>;

/**
 * Runs reads one after the other, each after the rest of the one before. Requests share the event loop with them, and a store
 * in the process shares its thread: without rests, eight readers would use all of it.
 */
export function createTurns(clock: Clock): TakeTurn {
  let last = Promise.resolve();
  /** When all rests are over. */
  let restedAt = Number.NEGATIVE_INFINITY;
  /** Counts a read since a time, and returns how long to rest now. */
  const restAfter = (since: number): number => {
    const now = clock.monotonic();
    const over = Math.max(restedAt, since) + (now - since) * (1 + restFactor);
    restedAt = Math.min(over, now + allowanceMs + maxRestMs);
    return restedAt - now - allowanceMs;
  };
  return async (read) => {
    const before = last;
    const { promise, resolve: pass } = Promise.withResolvers<void>();
    last = promise;
    await before;
    let since = clock.monotonic();
    const cancel = clock.after(maxTurnMs, pass, { background: true });
    const rest: Rest = async () => {
      await new Promise<void>((resolve) => after(clock, restAfter(since), resolve));
      since = clock.monotonic();
    };
    try {
      return await read(rest);
    } finally {
      cancel();
      // The answer doesn't wait for it: only the next read does.
      after(clock, restAfter(since), pass);
    }
  };
}

function after(clock: Clock, milliseconds: number, run: () => void): void {
  if (milliseconds < minRestMs) run();
  else clock.after(milliseconds, run);
}

const rowsPerPiece = 100;

/** The same administration, which reads long pages in pieces and rests in between. */
export function resting(administration: Administration, rest: Rest): Administration {
  const { activity, steps, sessions, decisions, changes } = administration;
  return {
    ...administration,
    activity: { ...activity, list: inPieces(activity.list, rest) },
    steps: { ...steps, list: inPieces(steps.list, rest) },
    sessions: { ...sessions, list: inPieces(sessions.list, rest) },
    decisions: { ...decisions, list: inPieces(decisions.list, rest) },
    changes: { ...changes, list: inPieces(changes.list, rest) },
  };
}

function inPieces<Filter, Row>(
  list: (filter: Filter, paging?: Paging) => List<Row>,
  rest: Rest,
): (filter: Filter, paging?: Paging) => List<Row> {
  const readPage = (filter: Filter) => async (page: { cursor: string | null; limit: number }) => {
    const data: Row[] = [];
    let { cursor, limit: left } = page;
    for (;;) {
      const asked = Math.min(left, rowsPerPiece);
      const piece = await list(filter, { cursor, limit: asked });
      data.push(...piece.data);
      cursor = piece.nextCursor;
      left -= asked;
      // A short piece has passed over as many rows as a page may.
      if (cursor === null || left === 0 || piece.data.length < asked)
        return { data, nextCursor: cursor };
      await rest();
    }
  };
  return (filter, paging) => listOf(readPage(filter), (row) => row, paging);
}
