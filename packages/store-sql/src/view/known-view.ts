import type { View } from "@tollgate/store-engine";
import type { KnownRows } from "./known-rows.ts";

/** The view for decisions: reads cached rows first, then the database. It caches the rows that requests share. */
export function viewKnown(rows: View, known: KnownRows): View {
  const session: View["session"] = (organizationId, id) => {
    const before = known.sessions.get(organizationId, id);
    if (before) return before;
    const found = rows.session(organizationId, id);
    if (found) known.sessions.set(organizationId, id, found);
    return found;
  };
  return {
    ...rows,
    session,
    sessionOfTurn(organizationId, turnId) {
      const sessionId = known.turns.get(organizationId, turnId);
      if (sessionId !== null) return session(organizationId, sessionId);
      return rows.sessionOfTurn(organizationId, turnId);
    },
    response: (organizationId, id) =>
      known.responses.get(organizationId, id) ?? rows.response(organizationId, id),
    recentMatches(owner, source, chain) {
      const ids = known.recent.matches({ owner, source }, chain);
      if (!ids) return rows.recentMatches(owner, source, chain);
      return ids.flatMap((id) => session(owner.organizationId, id) ?? []);
    },
    key(organizationId, id) {
      const before = known.keys.get(organizationId, id);
      if (before) return before;
      const key = rows.key(organizationId, id);
      if (key) known.keys.set(organizationId, id, key);
      return key;
    },
    step(organizationId, id) {
      const before = known.steps.get(organizationId, id);
      if (before) return before.record;
      const record = rows.step(organizationId, id);
      if (record?.step.outcome === null)
        known.steps.set(organizationId, id, { record, holds: null });
      return record;
    },
    holds(record) {
      const open = known.steps.get(record.step.organizationId, record.step.id);
      if (open?.holds) return open.holds;
      const holds = rows.holds(record);
      if (open) open.holds = holds;
      return holds;
    },
    counter(key) {
      const before = known.counters.get(key);
      if (before) return before;
      const counter = rows.counter(key);
      if (counter) known.counters.set(counter);
      return counter;
    },
  };
}
