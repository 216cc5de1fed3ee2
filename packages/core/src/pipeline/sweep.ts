import type { Sweep, SweepResult } from "../contracts/retention.ts";
import { activityRemovedLeaf, transcriptsErasedLeaf } from "../evidence/leaves.ts";
import type { GatewayContext } from "./context.ts";
import { orUnavailable } from "./durable.ts";

const chunk = 100;

/**
 * Removes what is older than it is to be kept, a bounded chunk at a time, and says how much. Any process may run it, and
 * several at once. It ends early once `isStopped` says so. What cannot be removed keeps nothing else: the first failure
 * is thrown at the end.
 */
export async function sweep(
  context: GatewayContext,
  isStopped = (): boolean => false,
): Promise<number> {
  const { store, ids, retention } = context;
  const everyChunk = async (keep: number | null, next: (one: Sweep) => Promise<SweepResult>) => {
    if (keep === null) return 0;
    for (let removed = 0; ; ) {
      const swept = await orUnavailable(next({ at: context.clock.now(), keep, limit: chunk }));
      removed += swept.removed;
      if (!swept.more || isStopped()) return removed;
    }
  };
  return sumOfAll([
    // Each response says itself when it expires.
    () =>
      everyChunk(0, async ({ at, limit }) => {
        const removed = await store.responses.sweep({ at, limit });
        return { removed, more: removed === limit };
      }),
    () =>
      everyChunk(retention.activity, (one) =>
        store.steps.sweep({
          ...one,
          leaf: (removed) => activityRemovedLeaf(ids.uuid(), one, removed),
        }),
      ),
    () =>
      everyChunk(retention.transcripts, (one) => {
        // A store may decide again before it writes: an organization's leaf keeps its id.
        const leafIds = new Map<string, string>();
        return store.sessions.sweep({
          ...one,
          leaf(erased) {
            const id = leafIds.get(erased.organizationId) ?? ids.uuid();
            leafIds.set(erased.organizationId, id);
            return transcriptsErasedLeaf(id, one, erased);
          },
        });
      }),
  ]);
}

/** One after the other, each whatever became of those before. */
async function sumOfAll(parts: readonly (() => Promise<number>)[]): Promise<number> {
  const failures: unknown[] = [];
  let sum = 0;
  for (const part of parts)
    sum += await part().catch((failure: unknown) => {
      failures.push(failure);
      return 0;
    });
  if (failures.length > 0) throw failures[0];
  return sum;
}
