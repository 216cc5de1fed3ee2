import type { SessionState } from "./records.ts";
import type { SessionView } from "./view.ts";

/** A Session of a lineage, and the position in the transcript up to which its parts count. */
export interface LineageSegment {
  readonly session: SessionState;
  readonly end: number;
}

/** A branch begins with what it shares with its origin, so its history is that of several Sessions, oldest first. */
export function lineageOf(
  view: Pick<SessionView, "session">,
  session: SessionState,
): readonly LineageSegment[] {
  const segments: LineageSegment[] = [];
  let end = session.length;
  for (let at: SessionState | null = session; at && end > 0; at = originOf(view, at)) {
    segments.push({ session: at, end });
    end = Math.min(end, at.commonLength);
  }
  return segments.reverse();
}

/** The Session that one branched from. */
export function originOf(
  view: Pick<SessionView, "session">,
  { organizationId, branchedFromSessionId }: SessionState,
): SessionState | null {
  return branchedFromSessionId === null
    ? null
    : view.session(organizationId, branchedFromSessionId);
}
