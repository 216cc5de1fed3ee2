import type {
  OpenStepRefusal,
  Owner,
  SessionLookup,
  SessionMatch,
  TranscriptPart,
} from "@tollgate/core/store";
import { chainHead, chainLength, chainSlice, commonPrefix } from "./chain.ts";
import { isOwnedBy, type PartRecord, type SessionState, type SessionView } from "./model.ts";

/** Where a request's messages belong. */
export type Assignment =
  | { readonly kind: "continue"; readonly session: SessionState }
  | ({ readonly kind: "branch"; readonly origin: SessionState } & Pick<
      SessionState,
      "commonLength" | "historyFromSessionId"
    >)
  | { readonly kind: "create" };

type NotFound = Extract<OpenStepRefusal, { code: "session_not_found" | "turn_not_found" }>;

/** The Session a Step would continue or branch from now. Null if it would create one, or be refused. */
export function findSession(view: SessionView, lookup: SessionLookup): SessionMatch | null {
  const assignment = assignSession(view, lookup);
  return "code" in assignment ? null : foundSessionOf(assignment);
}

/** Assigns a request to a Session, by the rules of section 3 of the specification. */
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

/** The Session an assignment continues or branches from, and how many of its messages. Null for a new Session. */
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

/** Continues a named Session or the branch of it that matches the request, or else starts a new branch. */
function continueNamed(view: SessionView, session: SessionState, chain: Uint8Array): Assignment {
  if (isPrefix(session, chain)) return { kind: "continue", session };
  const matches = sortedByLength(view.matchingBranches(session, chain));
  const branch = firstDescendant(view, session, matches);
  if (branch) return { kind: "continue", session: branch };
  return { kind: "branch", origin: session, ...sharedHistory(view, session, chain) };
}

/**
 * How much of a Session's history a request begins with, and the Session that stores the end of that. Reads from the end,
 * where most requests diverge: a chain value depends on all before it, so what comes before a shared one is shared.
 */
function sharedHistory(
  view: SessionView,
  session: SessionState,
  chain: Uint8Array,
): Pick<SessionState, "commonLength" | "historyFromSessionId"> {
  let end = session.length;
  for (let at: SessionState | null = session; at; at = historyFrom(view, at)) {
    const shared = commonPrefix(view.chainBefore(at, end), chainSlice(chain, at.commonLength));
    if (shared > 0) return { commonLength: at.commonLength + shared, historyFromSessionId: at.id };
    end = at.commonLength;
  }
  return { commonLength: 0, historyFromSessionId: null };
}

/** How many Sessions up a branch is still known to descend from another. */
const maxGenerations = 100;
/** How many Sessions are looked at for all branches together. */
const maxAncestors = 300;

/** The first of the matching Sessions of a tree that branched from another one of it, directly or through others. */
function firstDescendant(
  view: Pick<SessionView, "session">,
  ancestor: SessionState,
  matches: readonly SessionState[],
): SessionState | undefined {
  if (ancestor.rootSessionId === null) return matches[0];
  let left = maxAncestors;
  return matches.find((match) => {
    let at: SessionState | null = match;
    for (let generations = 0; at && generations < maxGenerations && left > 0; generations++) {
      if (at.branchedFromSessionId === ancestor.id) return true;
      at = sessionNamed(view, at, at.branchedFromSessionId);
      left--;
    }
    return false;
  });
}

/** A request without ids continues a Session or creates one. It never branches. */
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
  const [session] = sortedByLength(
    candidates.filter((candidate) => !isSameInFlight(candidate, chain)),
  );
  return session ? { kind: "continue", session } : { kind: "create" };
}

/** Whether a Session in flight was created by an identical request: two identical requests create two Sessions. */
function isSameInFlight({ inFlight, length }: SessionState, chain: Uint8Array): boolean {
  return inFlight && length === chainLength(chain);
}

/** Whether a request starts with a Session's history. A chain value depends on all before it, so the head is enough. */
export function isPrefix({ length, head }: SessionState, chain: Uint8Array): boolean {
  return length > 0 && length <= chainLength(chain) && chainHead(chain, length) === head;
}

/** Longest first; those of equal length with the latest update first. */
function sortedByLength(sessions: readonly SessionState[]): readonly SessionState[] {
  if (sessions.length < 2) return sessions;
  return [...sessions].sort((a, b) => b.length - a.length || b.updated - a.updated);
}

function ifOwned(owner: Owner, session: SessionState | null): SessionState | null {
  return session && isOwnedBy(owner, session) ? session : null;
}

/** A Session of a lineage, and the position in the transcript up to which its parts belong to the history. */
export interface LineageSegment {
  readonly session: SessionState;
  readonly end: number;
}

/** The Sessions that store a Session's history, oldest first: a branch starts with what it shares with its origin. */
export function lineageOf(
  view: Pick<SessionView, "session">,
  session: SessionState,
): readonly LineageSegment[] {
  const segments: LineageSegment[] = [];
  let end = session.length;
  for (let at: SessionState | null = session; at; at = historyFrom(view, at)) {
    segments.push({ session: at, end });
    end = at.commonLength;
  }
  return segments.reverse();
}

/** A part of a transcript up to a position: a branch may diverge within a part. */
export function transcriptPart(
  part: Pick<PartRecord, "stepId" | "kind" | "count" | "content"> & { readonly position: number },
  end: number,
): TranscriptPart {
  const { stepId, kind, position: from, content } = part;
  const count = Math.min(part.count, end - from);
  return {
    stepId,
    kind: kind === "reply" ? "reply" : "request",
    from,
    count,
    content:
      content && count < part.count ? Uint8Array.from(messagePrefix(content, count)) : content,
  };
}

/**
 * Cuts a JSON array in UTF-8 after its first `count` messages, byte for byte: the messages that a branch shares with the
 * part it diverged in. Returns the whole array if it has no more messages.
 */
function messagePrefix(content: Uint8Array, count: number): Uint8Array {
  const end = count === 0 ? content.indexOf(0x5b) + 1 : endOfMessage(content, count);
  if (end === null) return content;
  return Buffer.concat([content.subarray(0, end), Uint8Array.of(0x5d)]);
}

/** Where message number `count` ends; null if no further message follows it. */
function endOfMessage(content: Uint8Array, count: number): number | null {
  let depth = 0;
  let seen = 0;
  for (let at = 0; at < content.length; at++) {
    const byte = content[at] ?? 0;
    if (byte === quote) at = endOfString(content, at);
    else if (openers.has(byte)) depth++;
    else if (closers.has(byte)) depth--;
    else if (byte === comma && depth === 1 && ++seen === count) return at;
  }
  return null;
}

/** The position of the closing quote of the string that starts at `start`. */
function endOfString(content: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < content.length && content[at] !== quote) at += content[at] === backslash ? 2 : 1;
  return at;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openers: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const closers: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** The Session that stores the messages before a Session's own. */
export function historyFrom(
  view: Pick<SessionView, "session">,
  session: SessionState,
): SessionState | null {
  return sessionNamed(view, session, session.historyFromSessionId);
}

function sessionNamed(
  view: Pick<SessionView, "session">,
  { organizationId }: SessionState,
  id: string | null,
): SessionState | null {
  return id === null ? null : view.session(organizationId, id);
}
