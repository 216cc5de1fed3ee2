import type { SessionQuery } from "../contracts/repositories.ts";
import type { Message } from "../domain/message.ts";
import type { Session } from "../domain/session.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { filters, read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { type ContentReference, recordReading } from "./content-reading.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { method } from "./method.ts";
import { contentReference, recordReference, sessionFilter } from "./schemas.ts";
import { type OrganizationScope, tenantOf, toIso } from "./tenant.ts";

/** A persisted transcript of API calls (section 2.8). Times are ISO 8601. */
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
   * The whole history in order, including the messages a branch shares with its origin. Records who reads it, as a change of
   * kind `transcript.read`, before it returns.
   * @throws GatewayError `session_not_found`, or `admin_forbidden` if the Session has a data class above `upTo`
   */
  transcript(reference: ContentReference): Promise<readonly TranscriptEntry[]>;
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
    transcript: method(contentReference, async (reference) => {
      await ready();
      const { id } = reference;
      const parts = await store.sessions.transcript(tenantOf(reference), id);
      // Read after its content: a Session gains data classes and never loses one.
      const session = await store.sessions.get(tenantOf(reference), id);
      if (!parts || !session) throw notFound();
      const { organizationId, dataClasses } = session;
      const count = parts.reduce((sum, part) => sum + part.count, 0);
      const content = { organizationId, dataClasses, session: id, count };
      await recordReading(context, content, reference);
      return parts.map(({ content, ...part }) => ({
        ...part,
        messages: content && JSON.parse(Buffer.from(content).toString()),
      }));
    }),
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
