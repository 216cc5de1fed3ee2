import {
  type Change,
  isPrefix,
  type RowName,
  type SessionState,
  type View,
} from "@tollgate/store-engine";
import { isSameRow } from "./lock-rows.ts";

/** An earlier change of the same statement, and the Sessions that it locks. */
export interface Earlier {
  readonly change: Change;
  readonly group: number;
  readonly locks: { readonly sessions: readonly RowName[] };
}

/**
 * The known rows, with Sessions as earlier changes of the same statement leave them. Those Sessions keep the version of
 * their stored rows, which the database compares.
 */
export function viewAfter(view: View, before: readonly Pick<Earlier, "change">[]): View {
  const moved = movedBy(before);
  if (moved.length === 0) return view;
  const after = (session: SessionState | null): SessionState | null =>
    moved.findLast((one) => session !== null && isSameRow(one, session)) ?? session;
  return {
    ...view,
    session: (organizationId, id) => after(view.session(organizationId, id)),
    sessionOfTurn: (organizationId, id) => after(view.sessionOfTurn(organizationId, id)),
    recentMatches: (owner, source, chain) =>
      view.recentMatches(owner, source, chain).flatMap((session) => {
        const current = after(session);
        return current && isPrefix(current, chain) ? current : [];
      }),
  };
}

/** The group of a change: that of an earlier change of the same Session, or its own. A group is written all or none. */
export function groupAfter(
  sessions: readonly RowName[],
  before: readonly Pick<Earlier, "locks" | "group">[],
  place: number,
): number {
  if (sessions.length === 0) return place;
  const leader = before.find(({ locks }) =>
    locks.sessions.some((one) => sessions.some((other) => isSameRow(one, other))),
  );
  return leader?.group ?? place;
}

/** Drops updates of Sessions that later changes replace. */
export function withoutReplaced(changes: readonly Change[]): readonly Change[] {
  const moved = movedBy(changes.map((change) => ({ change })));
  const isReplaced = ({ write, row }: Change[number]): boolean =>
    write === "update session" && moved.findLast((one) => isSameRow(one, row)) !== row;
  return changes.map((change) =>
    change.some(isReplaced) ? change.filter((operation) => !isReplaced(operation)) : change,
  );
}

function movedBy(drafts: readonly Pick<Earlier, "change">[]): readonly SessionState[] {
  const moved: SessionState[] = [];
  for (const { change } of drafts)
    for (const { write, row } of change) if (write === "update session") moved.push(row);
  return moved;
}
