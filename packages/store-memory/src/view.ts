import {
  compareBytes,
  type DueOrganizations,
  type HeldContent,
  type OrganizationPaging,
  type RetentionView,
  type SessionState,
  type View,
} from "@tollgate/store-engine";
import { claimKeyOf, type SessionRow, type State, type StepRow, turnOf } from "./state.ts";

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
    response(organizationId, id) {
      const response = state.responses.response(organizationId, id);
      if (!response) return null;
      return { ...response, keptBytes: response.messages.length + response.inherited.length };
    },
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
  return {
    organizationsOfOldSteps: (before, page) =>
      pageInOrder(new Set(oldSteps(state, before).map((row) => row.organizationId)), page),
    oldSteps: (organizationId, before, limit) =>
      oldSteps(state, before)
        .filter((row) => row.organizationId === organizationId)
        .slice(0, limit)
        .map(({ id }) => id),
    organizationsOfOldSessions(before, page) {
      const oldest = new Map<string, SessionState>();
      for (const { record } of state.sessions.rows()) {
        const { organizationId, updated } = record;
        const other = oldest.get(organizationId);
        if (updated > markOf(state, organizationId) && !(other && other.updated < updated))
          oldest.set(organizationId, record);
      }
      const due = [...oldest.values()].filter(({ updatedAt }) => updatedAt < before);
      const found = pageInOrder(new Set(due.map((record) => record.organizationId)), page);
      return {
        ...found,
        due: found.due.map((organizationId) => ({
          organizationId,
          mark: markOf(state, organizationId),
        })),
      };
    },
    sessionsInOrder: (organizationId, mark, limit) =>
      state.sessions
        .all({ tenant: organizationId, matches: ({ record }) => record.updated > mark })
        .map(({ record }) => record)
        .sort((a, b) => a.updated - b.updated)
        .slice(0, limit),
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

/** A page of organizations that are due. It looks at all organizations at once. */
function pageInOrder(
  organizations: ReadonlySet<string>,
  { from, limit }: OrganizationPaging,
): DueOrganizations<string> {
  const rest = [...organizations].filter((id) => compareBytes(id, from) >= 0).sort(compareBytes);
  return { due: rest.slice(0, limit), next: rest[limit] ?? null };
}

/** The update up to which the organization's Sessions were checked for erasure. */
function markOf({ erasedUpTo }: State, organizationId: string): number {
  return erasedUpTo.get(organizationId) ?? -1;
}

/** The settled Steps of all organizations that opened before a time, oldest first. */
function oldSteps({ steps }: State, before: number): readonly StepRow[] {
  const old: StepRow[] = [];
  for (const row of steps.rows()) {
    const { openedAt, outcome } = row.record.step;
    if (openedAt >= before) break;
    if (outcome !== null) old.push(row);
  }
  return old;
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
