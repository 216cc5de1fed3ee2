import type { StepSweep, SweepResult, TranscriptSweep } from "@tollgate/core/store";
import type { Decision, Operation } from "../change.ts";
import { originOf } from "../lineage.ts";
import type { SessionState } from "../records.ts";
import type { RetentionView } from "../view.ts";

/** Removes the oldest settled Steps, organization by organization, and records for each how many. */
export function sweepSteps(view: RetentionView, sweep: StepSweep): Decision<SweepResult> {
  const { at, keep, limit, leaf } = sweep;
  const before = at - keep;
  const change: Operation[] = [];
  let removed = 0;
  for (const organizationId of view.organizationsOfOldSteps(before, limit)) {
    const ids = view.oldSteps(organizationId, before, limit - removed);
    for (const id of ids) change.push({ write: "remove step", row: { organizationId, id } });
    change.push({ write: "insert leaf", row: leaf({ organizationId, count: ids.length }) });
    removed += ids.length;
    if (removed === limit) break;
  }
  return { result: { removed, more: removed === limit }, change };
}

/** Erases what was said in the Sessions that were used the longest ago, organization by organization. */
export function sweepTranscripts(
  view: RetentionView,
  sweep: TranscriptSweep,
): Decision<SweepResult> {
  const { at, keep, limit } = sweep;
  const change: Operation[] = [];
  let [examined, removed] = [0, 0];
  for (const due of view.organizationsOfOldSessions(at - keep, limit)) {
    const swept = sweepOrganization(view, sweep, { ...due, limit: limit - examined });
    change.push(...swept.change);
    examined += swept.examined;
    removed += swept.removed;
    if (examined === limit) break;
  }
  return { result: { removed, more: examined === limit }, change };
}

interface SweptOrganization {
  readonly examined: number;
  readonly removed: number;
  readonly change: readonly Operation[];
}

function sweepOrganization(
  view: RetentionView,
  { at, keep, leaf }: TranscriptSweep,
  place: { readonly organizationId: string; readonly mark: number; readonly limit: number },
): SweptOrganization {
  const { organizationId, mark, limit } = place;
  const before = at - keep;
  const sessions = view.sessionsInOrder(organizationId, mark, limit);
  const inUse = sessions.findIndex(({ updatedAt }) => updatedAt >= before);
  const old = inUse < 0 ? sessions : sessions.slice(0, inUse);
  const erased = new Set<string>();
  for (const session of old) eraseLineage(view, { session, before, erased });
  const sessionIds = [...erased];
  const change: Operation[] = sessionIds.map((id) => ({
    write: "erase session",
    row: { organizationId, id },
  }));
  const last = old.at(-1);
  if (last) change.push({ write: "mark erased", row: { organizationId, updated: last.updated } });
  if (erased.size > 0)
    change.push({ write: "insert leaf", row: leaf({ organizationId, sessionIds }) });
  return { examined: old.length, removed: erased.size, change };
}

/** A Session, and those it branched from, which may have waited for it. */
function eraseLineage(
  view: RetentionView,
  lineage: {
    readonly session: SessionState;
    readonly before: number;
    readonly erased: Set<string>;
  },
): void {
  const { before, erased } = lineage;
  for (let at: SessionState | null = lineage.session; at && !erased.has(at.id); ) {
    // One that is in use keeps what its branches begin with, and so does a branch that is in use.
    if (at.updatedAt >= before || view.hasBranchSince(at, before)) return;
    if (view.holdsContent(at)) erased.add(at.id);
    at = originOf(view, at);
  }
}
