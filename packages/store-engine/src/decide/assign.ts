import type { OpenStepRefusal, Owner, SessionLookup, SessionMatch } from "@tollgate/core/store";
import { chainHead, chainLength, commonPrefix } from "../chain.ts";
import { isOwnedBy } from "../is-owned-by.ts";
import { lineageOf } from "../lineage.ts";
import type { SessionState } from "../records.ts";
import type { SessionView } from "../view.ts";

/** Where a request's messages belong. */
export type Assignment =
  | { readonly kind: "continue"; readonly session: SessionState }
  | { readonly kind: "branch"; readonly origin: SessionState; readonly commonLength: number }
  | { readonly kind: "create" };

type NotFound = Extract<OpenStepRefusal, { code: "session_not_found" | "turn_not_found" }>;

/** The Session that a Step would continue or branch from now; null where it would make one, or be refused. */
export function findSession(view: SessionView, lookup: SessionLookup): SessionMatch | null {
  const assignment = assignSession(view, lookup);
  return "code" in assignment ? null : foundSessionOf(assignment);
}

/** The assignment rules of section 3 of the specification. */
export function assignSession(view: SessionView, lookup: SessionLookup): Assignment | NotFound {
  const { owner, transcript } = lookup;
  const { sessionId, turnId, chain } = transcript;
  const { organizationId } = owner;
  const named = sessionId === null ? null : ifOwned(owner, view.session(organizationId, sessionId));
  if (sessionId !== null && !named) return { code: "session_not_found" };
  const ofTurn =
    turnId === null ? null : ifOwned(owner, view.sessionOfTurn(organizationId, turnId));
  if (turnId !== null && !ofTurn) return { code: "turn_not_found" };

  if (named) return continueNamed(view, named, chain);
  if (ofTurn && isPrefix(ofTurn, chain)) return { kind: "continue", session: ofTurn };
  return continueMatching(view, lookup);
}

/** The Session that an assignment continues or branches from, and how much of it; null for a new one. */
export function foundSessionOf(assignment: Assignment): SessionMatch | null {
  switch (assignment.kind) {
    case "continue":
      return foundSession(assignment.session, assignment.session.length);
    case "branch":
      return foundSession(assignment.origin, assignment.commonLength);
    case "create":
      return null;
  }
}

function foundSession({ id, dataClasses }: SessionState, commonLength: number): SessionMatch {
  return { sessionId: id, commonLength, dataClasses };
}

/** A named Session goes on, or the branch of it that the request follows, or a new branch begins. */
function continueNamed(view: SessionView, session: SessionState, chain: Uint8Array): Assignment {
  if (isPrefix(session, chain)) return { kind: "continue", session };
  const branch = pickLongest(view.matchingBranches(session, chain));
  if (branch) return { kind: "continue", session: branch };
  const commonLength = commonPrefix(chainOf(view, session), chain);
  return { kind: "branch", origin: session, commonLength };
}

/** The chain values of a Session's whole history. */
function chainOf(view: SessionView, session: SessionState): Uint8Array {
  const segments = lineageOf(view, session);
  return Buffer.concat(segments.map((segment) => view.chainBefore(segment.session, segment.end)));
}

/** Omitted ids continue or create; they never branch. */
function continueMatching(
  view: SessionView,
  { owner, source, transcript: { previousSessionId, chain } }: SessionLookup,
): Assignment {
  const considered =
    previousSessionId === null
      ? null
      : ifOwned(owner, view.session(owner.organizationId, previousSessionId));
  const matches = view.recentMatches(owner, source, chain);
  const candidates = considered && isPrefix(considered, chain) ? [...matches, considered] : matches;
  const session = pickLongest(candidates.filter((candidate) => !isSameInFlight(candidate, chain)));
  return session ? { kind: "continue", session } : { kind: "create" };
}

/** Whether all of the request is what a Session in flight was made with: two equal requests are two Sessions. */
function isSameInFlight({ inFlight, length }: SessionState, chain: Uint8Array): boolean {
  return inFlight && length === chainLength(chain);
}

/** The last value of a chain depends on all before it, so comparing the head compares the history. */
function isPrefix({ length, head }: SessionState, chain: Uint8Array): boolean {
  return length > 0 && length <= chainLength(chain) && chainHead(chain, length) === head;
}

function pickLongest(sessions: readonly SessionState[]): SessionState | null {
  return sessions.reduce<SessionState | null>((best, session) => {
    if (!best || session.length > best.length) return session;
    return session.length === best.length && session.updated > best.updated ? session : best;
  }, null);
}

function ifOwned(owner: Owner, session: SessionState | null): SessionState | null {
  return session && isOwnedBy(owner, session) ? session : null;
}
