import type { HeldContent, RetentionView, SessionState, View } from "@tollgate/store-engine";
import { claimKeyOf, type SessionRow, type State, turnOf } from "./state.ts";

/** Of one chain value. */
const bytes = 32;
const width = 2 * bytes;
/** A branch is looked for among at least this many that match. */
const maxMatches = 100;

/** A state as rules read it. */
export function viewOf(state: State): View {
  const session = (organizationId: string, id: string): SessionState | null =>
    state.sessions.get(organizationId, id)?.record ?? null;
  return {
    ...viewRetention(state),
    response: state.responses.response,
    continuations: state.responses.continuations,
    expiredResponses: state.responses.expiredResponses,
    expiredClaims(at, limit) {
      const expired = [...state.claims.values()].flatMap((claim) =>
        claim.expiresAt !== null && claim.expiresAt <= at ? [{ claim, by: claim.expiresAt }] : [],
      );
      return expired
        .sort((a, b) => a.by - b.by)
        .slice(0, limit)
        .map(({ claim }) => claim);
    },
    budgetsVersion: () => state.budgetsVersion,
    session,
    sessionOfTurn(organizationId, turnId) {
      const turn = turnOf(state, { organizationId, id: turnId });
      return turn && session(organizationId, turn.sessionId);
    },
    recentMatches({ organizationId, keyId }, source, chain) {
      const recent = state.keys.get(organizationId, keyId)?.recent.get(source);
      const values = Buffer.from(chain.buffer, chain.byteOffset, chain.byteLength);
      return recent ? matching(recent.prefixCandidates(values), chain) : [];
    },
    matchingBranches({ organizationId, id, rootSessionId }, chain) {
      const branches = state.sessions.get(organizationId, rootSessionId ?? id)?.branches;
      return branches ? headedBy(branches, chain) : [];
    },
    chainBefore: (record, end) => chainBefore(state, record, end),
    key: (organizationId, id) => state.keys.get(organizationId, id)?.key ?? null,
    step: (organizationId, id) => state.steps.get(organizationId, id)?.record ?? null,
    openedBefore: (organizationId, id) => state.steps.get(organizationId, id)?.record ?? null,
    holds: ({ step }) => state.steps.get(step.organizationId, step.id)?.holds ?? [],
    claim: (key) => state.claims.get(claimKeyOf(key)) ?? null,
    counter: (key) => state.counters.get(key),
    corrections: (organizationId, id) => state.steps.get(organizationId, id)?.corrections ?? [],
    hasDecision: (organizationId, id) => state.decisions.get(organizationId, id) !== null,
  };
}

function viewRetention(state: State): Omit<RetentionView, "session"> {
  const inOrder = (organizationId: string, mark: number): readonly SessionState[] =>
    state.sessions
      .all({ tenant: organizationId, matches: ({ record }) => record.updated > mark })
      .map(({ record }) => record)
      .sort((a, b) => a.updated - b.updated);
  return {
    organizationsOfOldSteps: (before, limit) =>
      organizationsOf(state, (id) => oldStepsOf(state, id, before).length > 0).slice(0, limit),
    oldSteps: (organizationId, before, limit) =>
      oldStepsOf(state, organizationId, before).slice(0, limit),
    organizationsOfOldSessions: (before, limit) =>
      organizationsOf(state, (id) => {
        const oldest = inOrder(id, markOf(state, id))[0];
        return oldest !== undefined && oldest.updatedAt < before;
      })
        .slice(0, limit)
        .map((organizationId) => ({ organizationId, mark: markOf(state, organizationId) })),
    sessionsInOrder: (organizationId, mark, limit) => inOrder(organizationId, mark).slice(0, limit),
    isNeededSince({ organizationId, id }, time) {
      const waiting = [...(state.sessions.get(organizationId, id)?.heirs ?? [])];
      for (const { record, heirs } of waiting) {
        if (record.updatedAt >= time) return true;
        for (const heir of heirs ?? []) waiting.push(heir);
      }
      return false;
    },
    contents: ({ organizationId, id }, limit) =>
      heldContents(state.sessions.get(organizationId, id), limit),
  };
}

/** Contents are erased in order, and new ones come last. */
function heldContents(session: SessionRow | null, limit: number): readonly HeldContent[] {
  if (session === null) return [];
  const { parts, errors, erased } = session;
  const held: HeldContent[] = [];
  for (let place = erased.parts; place < parts.length && held.length < limit; place++) {
    const { stepId, content } = parts[place] ?? { stepId: "", content: null };
    held.push({ of: "part", stepId, place, bytes: content?.length ?? 0 });
  }
  for (let place = erased.errors; place < errors.length && held.length < limit; place++)
    held.push({ of: "error", stepId: "", place, bytes: errors[place]?.message?.length ?? 0 });
  return held;
}

function organizationsOf(
  { salts }: State,
  isIncluded: (organizationId: string) => boolean,
): readonly string[] {
  return [...salts.keys()].filter(isIncluded).sort();
}

/** The update up to which the organization's Sessions were checked for erasure. */
function markOf({ erasedUpTo }: State, organizationId: string): number {
  return erasedUpTo.get(organizationId) ?? -1;
}

function oldStepsOf({ steps }: State, organizationId: string, before: number): readonly string[] {
  const ids: string[] = [];
  for (const row of steps.rows()) {
    const { step } = row.record;
    if (step.openedAt >= before) break;
    if (row.organizationId === organizationId && step.outcome !== null) ids.push(row.id);
  }
  return ids;
}

/** The Sessions whose head is the chain's value at their length. */
function matching(rows: readonly SessionRow[], chain: Uint8Array): readonly SessionState[] {
  const values = Buffer.from(chain.buffer, chain.byteOffset, chain.byteLength);
  const matches: SessionState[] = [];
  for (const { record } of rows) {
    const { head, length } = record;
    if (length > 0 && values.toString("hex", (length - 1) * bytes, length * bytes) === head)
      matches.push(record);
  }
  return matches;
}

/** The branches whose head is one of the chain's values, the longest first. */
function headedBy(
  branches: ReadonlyMap<string, ReadonlySet<SessionRow>>,
  chain: Uint8Array,
): readonly SessionState[] {
  const values = Buffer.from(chain.buffer, chain.byteOffset, chain.byteLength).toString("hex");
  const matches: SessionState[] = [];
  for (let at = values.length - width; at >= 0 && matches.length < maxMatches; at -= width)
    for (const { record } of branches.get(values.slice(at, at + width)) ?? []) matches.push(record);
  return matches;
}

function chainBefore(state: State, { organizationId, id }: SessionState, end: number): Uint8Array {
  const parts = state.sessions.get(organizationId, id)?.parts ?? [];
  const values = parts.flatMap(({ position, count, chain }) =>
    position === null || position >= end
      ? []
      : [chain.slice(0, Math.min(count, end - position) * width)],
  );
  return Buffer.from(values.join(""), "hex");
}
