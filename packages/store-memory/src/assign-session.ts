import type { FoundSession, OpeningRefusal, SessionLookup } from "@tollgate/core/store";
import { isOwnedBy } from "./is-owned-by.ts";
import { chainValueBytes, recentSessionsOf, type SessionRow, type State } from "./state.ts";

/** Where a request's messages belong. */
export type Assignment =
  | { readonly kind: "continue"; readonly session: SessionRow }
  | { readonly kind: "branch"; readonly origin: SessionRow; readonly commonLength: number }
  | { readonly kind: "create" };

/** Characters of one chain value in hex. */
const width = 2 * chainValueBytes;

/** The assignment rules of section 3 of the specification. `chain` is the request's, in hex. */
export function assignSession(
  state: State,
  lookup: SessionLookup,
  chain: string,
): Assignment | Extract<OpeningRefusal, { code: "session_not_found" | "turn_not_found" }> {
  const { owner, transcript } = lookup;
  const named = transcript.sessionId;
  const session = named === null ? null : state.sessions.get(owner.organizationId, named);
  if (named !== null && !(session && isOwnedBy(owner, session)))
    return { code: "session_not_found" };
  const turn =
    transcript.turnId === null ? null : state.turns.get(owner.organizationId, transcript.turnId);
  if (transcript.turnId !== null && !(turn && isOwnedBy(owner, turn)))
    return { code: "turn_not_found" };

  if (session) return continueNamed(session, chain);
  if (turn && isPrefix(turn.session, chain)) return { kind: "continue", session: turn.session };
  return continueMatching(state, lookup, chain);
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

function found({ id, dataClasses }: SessionRow, commonLength: number): FoundSession {
  return { sessionId: id, commonLength, dataClasses: [...dataClasses] };
}

/** A named Session goes on, or the branch of it that the request follows, or a new branch begins. */
function continueNamed(session: SessionRow, chain: string): Assignment {
  if (isPrefix(session, chain)) return { kind: "continue", session };
  const branch = longest(descendantsOf(session).filter((row) => isPrefix(row, chain)));
  if (branch) return { kind: "continue", session: branch };
  return { kind: "branch", origin: session, commonLength: commonLength(session.chain, chain) };
}

/** Omitted ids continue or create; they never branch. */
function continueMatching(state: State, lookup: SessionLookup, chain: string): Assignment {
  const { owner, source, transcript } = lookup;
  const candidates = [...recentSessionsOf(state, owner, source)];
  const considered =
    transcript.alsoConsider === null
      ? null
      : state.sessions.get(owner.organizationId, transcript.alsoConsider);
  if (considered && isOwnedBy(owner, considered)) candidates.push(considered);
  const session = longest(
    candidates.filter(
      (row) => isPrefix(row, chain) && !(isFirstInFlight(row) && row.chain === chain),
    ),
  );
  return session ? { kind: "continue", session } : { kind: "create" };
}

/** Whether the Step that created a Session is in flight and its head is the Session's still. */
function isFirstInFlight(session: SessionRow): boolean {
  const { createdBy } = session;
  return createdBy?.step.settledAt === null && createdBy.length === session.length;
}

function isPrefix(session: SessionRow, chain: string): boolean {
  // The last value of a chain stands for all before it, so comparing the head compares the history.
  return session.length > 0 && chain.startsWith(session.head, (session.length - 1) * width);
}

function longest(sessions: readonly SessionRow[]): SessionRow | null {
  return sessions.reduce<SessionRow | null>((best, row) => {
    if (!best || row.length > best.length) return row;
    return row.length === best.length && row.updated > best.updated ? row : best;
  }, null);
}

function descendantsOf(session: SessionRow): SessionRow[] {
  const found = [...session.branches];
  for (const row of found) found.push(...row.branches);
  return found;
}

function commonLength(a: string, b: string): number {
  let length = 0;
  const next = (chain: string): string => chain.slice(length * width, (length + 1) * width);
  while (next(a) !== "" && next(a) === next(b)) length++;
  return length;
}
