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
import { assignSession, foundBy } from "./assign-session.ts";
import { isOwnedBy } from "./is-owned-by.ts";
import type { SessionRow, State } from "./state.ts";
import { sweepTranscripts } from "./sweep-transcripts.ts";

export function createSessionRepository(state: State): SessionRepository {
  return {
    async get(organizationId, id) {
      const row = state.sessions.get(organizationId, id);
      return row && sessionOf(row);
    },
    list: async (query, paging) => page(state, query, paging),
    async transcript(organizationId, id, from = 0) {
      const row = state.sessions.get(organizationId, id);
      return row && transcriptOf(row, from);
    },
    async find(lookup) {
      const chain = Buffer.from(lookup.transcript.chain).toString("hex");
      const assignment = assignSession(state, lookup, chain);
      return "code" in assignment ? null : foundBy(assignment);
    },
    async isOwned(owner, sessionId) {
      const row = state.sessions.get(owner.organizationId, sessionId);
      return row !== null && isOwnedBy(owner, row);
    },
    async ofTurn(owner, turnId) {
      const row = state.turns.get(owner.organizationId, turnId);
      return row && isOwnedBy(owner, row) ? row.session.id : null;
    },
    sweep: async (sweep) => sweepTranscripts(state, sweep),
  };
}

function sessionOf(row: SessionRow): Session {
  const { id, organizationId, userId, keyId, source, head, length, createdAt, updatedAt } = row;
  return {
    id,
    organizationId,
    userId,
    keyId,
    source,
    head,
    length,
    dataClasses: [...row.dataClasses],
    createdAt,
    updatedAt,
    branchedFromSessionId: row.branchedFrom?.id ?? null,
    commonLength: row.commonLength,
  };
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
      matches: (row) => row.updated < before && isAsked(row, query),
    },
    { cursor: null, limit: Number.POSITIVE_INFINITY },
  ).data;
  const rows = [...all].sort((a, b) => b.updated - a.updated);
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    data: shown.map(sessionOf),
    nextCursor:
      last && rows.length > limit ? encodeCursor(listName, { order: last.updated, tie: "" }) : null,
  };
}

function isAsked(row: SessionRow, { userId, keyId, source }: SessionQuery): boolean {
  return (
    (userId === undefined || row.userId === userId) &&
    (keyId === undefined || row.keyId === keyId) &&
    (source === undefined || row.source === source)
  );
}

/** A branch begins with what it shares with its origin, so the lineage is read from the branch back. */
function transcriptOf(session: SessionRow, from: number): readonly TranscriptPart[] {
  const stretches: TranscriptPart[][] = [];
  let end = session.length;
  for (let row: SessionRow | null = session; row && end > 0; row = row.branchedFrom) {
    const parts = row.parts.filter((part) => part.from < end && part.from + part.count > from);
    stretches.unshift(parts.map((part) => cut(part, end)));
    end = Math.min(end, row.commonLength);
  }
  return stretches.flat();
}

/** The part up to a position, with bytes of its own. */
function cut(part: TranscriptPart, end: number): TranscriptPart {
  const count = Math.min(part.count, end - part.from);
  const { content } = part;
  if (content === null) return { ...part, count };
  const kept = count < part.count ? messagePrefix(content, count) : content;
  return { ...part, count, content: Uint8Array.from(kept) };
}
