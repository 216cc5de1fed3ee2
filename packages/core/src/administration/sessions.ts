import type { SessionQuery, StorePage, StorePaging } from "../contracts/repositories.ts";
import { decodeCursor, encodeCursor } from "../domain/cursor.ts";
import type { Message } from "../domain/message.ts";
import type { Session, TranscriptPart } from "../domain/session.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { filters, read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { type ContentReference, recordReading } from "./content-reading.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { method } from "./method.ts";
import {
  maxTranscriptMessages,
  recordReference,
  sessionFilter,
  transcriptReference,
} from "./schemas.ts";
import { type OrganizationScope, tenantOf, toIso } from "./tenant.ts";

/** A persisted transcript of API calls. Times are ISO 8601. */
export interface SessionRecord extends Omit<Session, "createdAt" | "updatedAt"> {
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** A part of a transcript: the messages that one Step appended. */
export interface TranscriptEntry {
  readonly stepId: string;
  readonly kind: "request" | "reply";
  /** The position of its first message, from 0, and the number of messages. */
  readonly from: number;
  readonly count: number;
  /** Null if only digests are kept, or the content was erased. */
  readonly messages: readonly Message[] | null;
}

/** A part of a transcript to read, and who reads it. */
export interface TranscriptReference extends ContentReference {
  /** The position of the first message to read. Default: 0. */
  readonly from?: number;
  /** How many messages to read: 1 to 1,000, which is the default. */
  readonly count?: number;
}

/** Selects Sessions. Every given member must match. */
export interface SessionFilter extends OrganizationScope {
  readonly user?: string;
  readonly key?: string;
  readonly source?: string;
}

/** Sessions and their transcripts. */
export interface Sessions {
  /** Most recently updated first. */
  list(filter: SessionFilter, paging?: Paging): List<SessionRecord>;
  /** @throws GatewayError `session_not_found` */
  get(reference: OrganizationScope & { readonly id: string }): Promise<SessionRecord>;
  /**
   * The Session, the one that it branched from, and so on to the first. `branchedFromSessionId` and `commonLength` say where each
   * branched.
   * @throws GatewayError `session_not_found`
   */
  lineage(
    reference: OrganizationScope & { readonly id: string },
    paging?: Paging,
  ): List<SessionRecord>;
  /**
   * The history in order, including the messages a branch shares with its origin: up to 1,000 messages from a position on. The
   * Session's `length` says how many there are. Records who reads them, as a change of kind `transcript.read`, before it returns.
   * @throws GatewayError `session_not_found`, or `admin_forbidden` if the Session has a data class above `upTo`
   */
  transcript(reference: TranscriptReference): Promise<readonly TranscriptEntry[]>;
}

export function createSessions(context: GatewayContext, ready: () => Promise<void>): Sessions {
  const { store } = context;
  return {
    list: (filter, paging) =>
      listOf(
        async (storePaging) => {
          const query = queryOf(read(sessionFilter, filter, filters));
          await ready();
          return store.sessions.list(query, storePaging);
        },
        toRecord,
        paging,
      ),
    get: method(recordReference, async (reference) => {
      await ready();
      const session = await store.sessions.get(tenantOf(reference), reference.id);
      if (!session) throw notFound();
      return toRecord(session);
    }),
    lineage: (reference, paging) =>
      listOf(
        async (storePaging) => {
          const checked = read(recordReference, reference);
          await ready();
          return lineageOf(context, checked, storePaging);
        },
        toRecord,
        paging,
      ),
    transcript: method(transcriptReference, async (reference) => {
      await ready();
      const { id, from = 0, count: max = maxTranscriptMessages } = reference;
      const parts = await store.sessions.transcript(tenantOf(reference), id, from, from + max);
      // Read after its content: a Session gains data classes and never loses one.
      const session = await store.sessions.get(tenantOf(reference), id);
      if (!parts || !session) throw notFound();
      const { organizationId, dataClasses } = session;
      const entries = parts.map((part) => entryOf(part, from, from + max));
      const count = entries.reduce((sum, entry) => sum + entry.count, 0);
      const content = { organizationId, dataClasses, session: id, from, count };
      await recordReading(context, content, reference);
      return entries;
    }),
  };
}

/** The messages of a part from one position up to another. */
function entryOf(part: TranscriptPart, start: number, end: number): TranscriptEntry {
  const { stepId, kind, content } = part;
  const from = Math.max(part.from, start);
  const count = Math.min(part.from + part.count, end) - from;
  const messages: readonly Message[] | null =
    content && JSON.parse(Buffer.from(content).toString());
  const first = from - part.from;
  return { stepId, kind, from, count, messages: messages?.slice(first, first + count) ?? null };
}

const lineageName = "lineage";

/** One page of the Sessions from one to the first that it comes from. The cursor names the next one. */
async function lineageOf(
  { store }: GatewayContext,
  reference: OrganizationScope & { readonly id: string },
  { cursor, limit }: StorePaging,
): Promise<StorePage<Session>> {
  const data: Session[] = [];
  let next: string | null = cursor === null ? reference.id : decodeCursor(lineageName, cursor).tie;
  while (next !== null && data.length < limit) {
    const session: Session | null = await store.sessions.get(tenantOf(reference), next);
    if (session === null && cursor === null && data.length === 0) throw notFound();
    if (session !== null) data.push(session);
    next = session?.branchedFromSessionId ?? null;
  }
  return {
    data,
    nextCursor: next === null ? null : encodeCursor(lineageName, { order: 0, tie: next }),
  };
}

function queryOf(filter: SessionFilter): SessionQuery {
  const { user, key, source } = filter;
  return {
    organizationId: tenantOf(filter),
    ...(user === undefined ? {} : { userId: user }),
    ...(key === undefined ? {} : { keyId: key }),
    ...(source === undefined ? {} : { source }),
  };
}

function toRecord(session: Session): SessionRecord {
  return { ...session, createdAt: toIso(session.createdAt), updatedAt: toIso(session.updatedAt) };
}

function notFound(): GatewayError {
  return new GatewayError(
    "session_not_found",
    "Unknown id: this organization has no such Session.",
  );
}
