import {
  decodeCursor,
  encodeCursor,
  messagePrefix,
  type Session,
  type SessionQuery,
  type SessionRepository,
  type StorePage,
  type StorePaging,
  type TranscriptPart,
} from "@tollgate/core/store";
import {
  findSession,
  isOwnedBy,
  lineageOf,
  type SessionState,
  sweepTranscripts,
} from "@tollgate/store-engine";
import type { CarryOut } from "./carry-out.ts";
import type { PartRow, State } from "./state.ts";
import { viewOf } from "./view.ts";

export function createSessionRepository(state: State, carryOut: CarryOut): SessionRepository {
  return {
    async get(organizationId, id) {
      const row = state.sessions.get(organizationId, id);
      return row && sessionOf(row.record);
    },
    list: async (query, paging) => page(state, query, paging),
    async transcript(organizationId, id, from = 0) {
      const row = state.sessions.get(organizationId, id);
      return row && transcriptOf(state, row.record, from);
    },
    find: async (lookup) => findSession(viewOf(state), lookup),
    async isOwned(owner, sessionId) {
      const row = state.sessions.get(owner.organizationId, sessionId);
      return row !== null && isOwnedBy(owner, row.record);
    },
    async findByTurn(owner, turnId) {
      const row = state.turns.get(owner.organizationId, turnId);
      return row && isOwnedBy(owner, row) ? row.sessionId : null;
    },
    sweep: async (sweep) => carryOut((view) => sweepTranscripts(view, sweep)),
  };
}

function sessionOf({ updated, inFlight, turnId, ...session }: SessionState): Session {
  return session;
}

const listName = "sessions";

function page(
  state: State,
  query: SessionQuery,
  { cursor, limit }: StorePaging,
): StorePage<Session> {
  const before = cursor === null ? Number.POSITIVE_INFINITY : decodeCursor(listName, cursor).order;
  const all = state.sessions.page(
    {
      direction: "oldest-first",
      tenant: query.organizationId,
      matches: (row) => row.record.updated < before && matchesQuery(row.record, query),
    },
    { cursor: null, limit: Number.POSITIVE_INFINITY },
  ).data;
  const rows = all.map(({ record }) => record).sort((a, b) => b.updated - a.updated);
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    data: shown.map(sessionOf),
    nextCursor:
      last && rows.length > limit ? encodeCursor(listName, { order: last.updated, tie: "" }) : null,
  };
}

function matchesQuery(row: SessionState, { userId, keyId, source }: SessionQuery): boolean {
  return (
    (userId === undefined || row.userId === userId) &&
    (keyId === undefined || row.keyId === keyId) &&
    (source === undefined || row.source === source)
  );
}

/** What the Steps of a Session, and of those it branched from, appended. */
function transcriptOf(
  state: State,
  record: SessionState,
  start: number,
): readonly TranscriptPart[] {
  return lineageOf(viewOf(state), record).flatMap(({ session, end }) => {
    const parts = state.sessions.get(session.organizationId, session.id)?.parts ?? [];
    return parts.flatMap((part) => {
      const { position } = part;
      const isIncluded = position !== null && position < end && position + part.count > start;
      return isIncluded ? [partUpTo(part, position, end)] : [];
    });
  });
}

/** A part with bytes of its own, cut where a branch diverged within it. */
function partUpTo(part: PartRow, from: number, end: number): TranscriptPart {
  const count = Math.min(part.count, end - from);
  const { stepId } = part;
  const content = part.content === null ? null : Buffer.from(part.content, "latin1");
  const kept = content && count < part.count ? messagePrefix(content, count) : content;
  const kind = part.kind === "reply" ? "reply" : "request";
  return { stepId, kind, from, count, content: kept && Uint8Array.from(kept) };
}
