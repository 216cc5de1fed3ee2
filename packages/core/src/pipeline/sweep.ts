import type { Sweep, Swept } from "../contracts/retention.ts";
import { activityRemovedLeaf, transcriptsErasedLeaf } from "../evidence/leaves.ts";
import { durable } from "./durable.ts";
import type { Line } from "./line.ts";

const chunk = 100;

/**
 * Removes what is older than it is to be kept, a bounded chunk at a time, and says how much. Any process may run it, and
 * several at once. It ends early once `isStopped` says so.
 */
export async function sweep(line: Line, isStopped = (): boolean => false): Promise<number> {
  const { store, ids, retention } = line;
  const everyChunk = async (keep: number | null, next: (one: Sweep) => Promise<Swept>) => {
    if (keep === null) return 0;
    for (let removed = 0; ; ) {
      const swept = await durable(next({ at: line.clock.now(), keep, limit: chunk }));
      removed += swept.removed;
      if (!swept.more || isStopped()) return removed;
    }
  };
  // Each response says itself when it expires.
  const responses = await everyChunk(0, async ({ at, limit }) => {
    const removed = await store.responses.sweep({ at, limit });
    return { removed, more: removed === limit };
  });
  const steps = await everyChunk(retention.activity, (one) =>
    store.steps.sweep({
      ...one,
      leaf: (removed) => activityRemovedLeaf(ids.uuid(), one, removed),
    }),
  );
  const transcripts = await everyChunk(retention.transcripts, (one) =>
    store.sessions.sweep({
      ...one,
      leaf: (erased) => transcriptsErasedLeaf(ids.uuid(), one, erased),
    }),
  );
  return responses + steps + transcripts;
}
