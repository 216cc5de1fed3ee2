import type { SessionRecord } from "./records.ts";
import type { SessionView } from "./view.ts";

/** A Session of a lineage, and the position in the transcript up to which its parts count. */
export interface Stretch {
  readonly session: SessionRecord;
  readonly end: number;
}

/** A branch begins with what it shares with its origin, so its history is that of several Sessions, oldest first. */
export function lineageOf(
  view: Pick<SessionView, "session">,
  session: SessionRecord,
): readonly Stretch[] {
  const stretches: Stretch[] = [];
  let end = session.length;
  for (let at: SessionRecord | null = session; at && end > 0; at = originOf(view, at)) {
    stretches.push({ session: at, end });
    end = Math.min(end, at.commonLength);
  }
  return stretches.reverse();
}

/** The Session that one branched from. */
export function originOf(
  view: Pick<SessionView, "session">,
  { organizationId, branchedFromSessionId }: SessionRecord,
): SessionRecord | null {
  return branchedFromSessionId === null
    ? null
    : view.session(organizationId, branchedFromSessionId);
}
