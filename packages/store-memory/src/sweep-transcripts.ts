import type { Swept, TranscriptSweep } from "@tollgate/core/store";
import type { SessionRow, State } from "./state.ts";

/** Erases what was said in the Sessions that were used the longest ago, organization by organization. */
export function sweepTranscripts(state: State, sweep: TranscriptSweep): Swept {
  const { limit } = sweep;
  let [looked, removed] = [0, 0];
  for (const organizationId of [...state.salts.keys()].sort()) {
    const one = sweepOrganization(state, sweep, { organizationId, limit: limit - looked });
    looked += one.looked;
    removed += one.removed;
    if (looked === limit) break;
  }
  return { removed, more: looked === limit };
}

function sweepOrganization(
  state: State,
  { at, keep, leaf }: TranscriptSweep,
  { organizationId, limit }: { readonly organizationId: string; readonly limit: number },
): { readonly looked: number; readonly removed: number } {
  const { sessions, erasedUpTo, leaves } = state;
  const before = at - keep;
  const mark = erasedUpTo.get(organizationId) ?? -1;
  const inOrder = sessions
    .newestFirst(organizationId)
    .filter(({ record }) => record.updated > mark)
    .sort((a, b) => a.record.updated - b.record.updated)
    .slice(0, limit);
  const inUse = inOrder.findIndex(({ record }) => record.updatedAt >= before);
  const old = inUse < 0 ? inOrder : inOrder.slice(0, inUse);
  const erased = new Set<SessionRow>();
  for (const session of old) eraseLineage(state, { session, before, erased });
  const last = old.at(-1);
  if (last) erasedUpTo.set(organizationId, last.record.updated);
  if (erased.size > 0)
    leaves.insert(leaf({ organizationId, sessionIds: [...erased].map(({ id }) => id) }));
  return { looked: old.length, removed: erased.size };
}

/** A Session, and those it branched from, which may have waited for it. */
function eraseLineage(
  state: State,
  lineage: {
    readonly session: SessionRow;
    readonly before: number;
    readonly erased: Set<SessionRow>;
  },
): void {
  const { before, erased } = lineage;
  for (let at: SessionRow | null = lineage.session; at && !erased.has(at); ) {
    if (isInUse(at, before)) return;
    if (at.holdsContent) {
      erase(at);
      erased.add(at);
    }
    at = originOf(state, at);
  }
}

function originOf({ sessions }: State, { record }: SessionRow): SessionRow | null {
  const { organizationId, branchedFromSessionId: id } = record;
  return id === null ? null : sessions.get(organizationId, id);
}

/** Itself, or a branch that begins with what it holds. */
function isInUse({ record, branches }: SessionRow, before: number): boolean {
  return record.updatedAt >= before || branches.some((branch) => isInUse(branch, before));
}

function erase(session: SessionRow): void {
  for (const part of session.parts) part.content = null;
  for (const error of session.errors) error.message = null;
  session.holdsContent = false;
}
