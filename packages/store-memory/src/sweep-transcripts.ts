import type { AttemptError, Swept, TranscriptPart, TranscriptSweep } from "@tollgate/core/store";
import type { SessionRow, State, StepRow } from "./state.ts";

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
  { sessions, erasedUpTo, leaves }: State,
  { at, keep, leaf }: TranscriptSweep,
  { organizationId, limit }: { readonly organizationId: string; readonly limit: number },
): { readonly looked: number; readonly removed: number } {
  const before = at - keep;
  const mark = erasedUpTo.get(organizationId) ?? -1;
  const inOrder = sessions
    .newestFirst(organizationId)
    .filter(({ updated }) => updated > mark)
    .sort((a, b) => a.updated - b.updated)
    .slice(0, limit);
  const inUse = inOrder.findIndex(({ updatedAt }) => updatedAt >= before);
  const old = inUse < 0 ? inOrder : inOrder.slice(0, inUse);
  const erased = new Set<SessionRow>();
  for (const session of old) eraseLineage(session, before, erased);
  const last = old.at(-1);
  if (last) erasedUpTo.set(organizationId, last.updated);
  if (erased.size > 0)
    leaves.insert(leaf({ organizationId, sessionIds: [...erased].map(({ id }) => id) }));
  return { looked: old.length, removed: erased.size };
}

/** A Session, and those it branched from, which may have waited for it. */
function eraseLineage(session: SessionRow, before: number, erased: Set<SessionRow>): void {
  for (let at: SessionRow | null = session; at && !erased.has(at); at = at.branchedFrom) {
    if (isInUse(at, before)) return;
    if (!at.holdsContent) continue;
    erase(at);
    erased.add(at);
  }
}

/** Itself, or a branch that begins with what it holds. */
function isInUse(session: SessionRow, before: number): boolean {
  return session.updatedAt >= before || session.branches.some((branch) => isInUse(branch, before));
}

function erase(session: SessionRow): void {
  session.parts.splice(0, Number.POSITIVE_INFINITY, ...session.parts.map(withoutContent));
  for (const step of session.steps) eraseStep(step);
  session.holdsContent = false;
}

function withoutContent(part: TranscriptPart): TranscriptPart {
  return { ...part, content: null };
}

function eraseStep(row: StepRow): void {
  const erased = { content: null, contentSalt: new Uint8Array() };
  row.instructions &&= { ...row.instructions, ...erased };
  row.reply &&= { ...row.reply, ...erased };
  row.reasoning &&= { ...row.reasoning, ...erased };
  const attempts = row.step.attempts.map((attempt) => ({
    ...attempt,
    end: attempt.end && { ...attempt.end, error: withoutMessage(attempt.end.error) },
  }));
  row.step = { ...row.step, attempts };
}

function withoutMessage(error: AttemptError | null): AttemptError | null {
  return error && { ...error, message: null };
}
