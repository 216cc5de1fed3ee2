import type { FoundSession, OpeningRefusal, Owner, SessionLookup } from "@tollgate/core/store";
import { opening, readRow, type SessionRecord, sessionRecordFromRow } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { chainLength, commonPrefix } from "./chain.ts";
import { chainOf } from "./chain-of.ts";

/** Where a request's messages belong. */
export type Assignment =
  | { readonly kind: "continue"; readonly session: SessionRecord }
  | { readonly kind: "branch"; readonly origin: SessionRecord; readonly commonLength: number }
  | { readonly kind: "create" };

/** All it takes is to read. */
type Reads = Pick<Connection, "get" | "all">;

type NotFound = Extract<OpeningRefusal, { code: "session_not_found" | "turn_not_found" }>;

/** The assignment rules of section 3 of the specification. */
export function assignSession(connection: Reads, lookup: SessionLookup): Assignment | NotFound {
  const { owner, transcript } = lookup;
  const named =
    transcript.sessionId === null
      ? null
      : owned(owner, find(connection, opening.session, owner, transcript.sessionId));
  if (transcript.sessionId !== null && !named) return { code: "session_not_found" };
  const ofTurn =
    transcript.turnId === null
      ? null
      : owned(owner, find(connection, opening.sessionOfTurn, owner, transcript.turnId));
  if (transcript.turnId !== null && !ofTurn) return { code: "turn_not_found" };

  if (named) return continueNamed(connection, lookup, named);
  if (ofTurn && isPrefix(ofTurn, transcript.chain)) return { kind: "continue", session: ofTurn };
  return continueMatching(connection, lookup);
}

/** The Session that an assignment continues or branches from, and how much of it; null for a new one. */
export function foundBy(assignment: Assignment): FoundSession | null {
  switch (assignment.kind) {
    case "continue":
      return found(assignment.session, assignment.session.length);
    case "branch":
      return found(assignment.origin, assignment.commonLength);
    case "create":
      return null;
  }
}

function found({ id, dataClasses }: SessionRecord, commonLength: number): FoundSession {
  return { sessionId: id, commonLength, dataClasses };
}

/** A named Session goes on, or the branch of it that the request follows, or a new branch begins. */
function continueNamed(
  connection: Reads,
  { owner, transcript: { chain } }: SessionLookup,
  session: SessionRecord,
): Assignment {
  if (isPrefix(session, chain)) return { kind: "continue", session };
  const branch = connection.get(opening.descendants, {
    organization_id: owner.organizationId,
    id: session.id,
    chain,
    length: chainLength(chain),
  });
  const followed = findById(connection, owner, branch);
  if (followed) return { kind: "continue", session: followed };
  const commonLength = commonPrefix(chainOf(connection, session), chain);
  return { kind: "branch", origin: session, commonLength };
}

/** Omitted ids continue or create; they never branch. */
function continueMatching(connection: Reads, lookup: SessionLookup): Assignment {
  const { owner, source, transcript } = lookup;
  const { chain } = transcript;
  const match = connection.get(opening.matchingSession, {
    organization_id: owner.organizationId,
    key_id: owner.keyId,
    source,
    chain,
    length: chainLength(chain),
  });
  const recent = findById(connection, owner, match);
  const session = longest(recent, consideredToo(connection, lookup));
  return session ? { kind: "continue", session } : { kind: "create" };
}

function consideredToo(
  connection: Reads,
  { owner, transcript: { alsoConsider, chain } }: SessionLookup,
): SessionRecord | null {
  if (alsoConsider === null) return null;
  const session = owned(owner, find(connection, opening.session, owner, alsoConsider));
  if (!session || !isPrefix(session, chain)) return null;
  return session.inFlight && session.length === chainLength(chain) ? null : session;
}

function longest(a: SessionRecord | null, b: SessionRecord | null): SessionRecord | null {
  if (!a || !b) return a ?? b;
  if (a.length !== b.length) return a.length > b.length ? a : b;
  return a.updated > b.updated ? a : b;
}

function find(
  connection: Reads,
  statement: string,
  { organizationId }: Owner,
  id: string,
): SessionRecord | null {
  const row = connection.get(statement, { organization_id: organizationId, id });
  return row === undefined ? null : sessionRecordFromRow(row);
}

/** The Session a row names; null without a row. */
function findById(connection: Reads, owner: Owner, row: unknown): SessionRecord | null {
  if (row === undefined) return null;
  return find(connection, opening.session, owner, readRow(row).text("id"));
}

function owned(owner: Owner, session: SessionRecord | null): SessionRecord | null {
  return session?.userId === owner.userId && session.keyId === owner.keyId ? session : null;
}

/** The last value of a chain stands for all before it, so comparing the head compares the history. */
function isPrefix({ length, headBytes }: SessionRecord, chain: Uint8Array): boolean {
  if (length === 0 || length > chainLength(chain)) return false;
  return Buffer.compare(chain.subarray((length - 1) * 32, length * 32), headBytes) === 0;
}
