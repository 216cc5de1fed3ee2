import type { Swept, TranscriptPart, TranscriptSweep } from "@tollgate/core/store";
import type { SessionRow, State, StepRow } from "./state.ts";

/** Erases what was said in Sessions that nobody continued for long, and from which none branched that somebody did. */
export function sweepTranscripts(state: State, { at, keep, limit, leaf }: TranscriptSweep): Swept {
  const before = at - keep;
  const old: SessionRow[] = [];
  for (const session of state.sessions.rows()) {
    if (old.length === limit) break;
    if (session.holdsContent && !isInUse(session, before)) old.push(session);
  }
  for (const session of old) erase(session);
  for (const [organizationId, erased] of Map.groupBy(old, (session) => session.organizationId))
    state.leaves.insert(leaf({ organizationId, sessionIds: erased.map(({ id }) => id) }));
  return { removed: old.length, more: old.length === limit };
}

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
}
