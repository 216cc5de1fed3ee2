import type { Owner } from "@tollgate/core/store";
import type { ClaimKey, RowName, SessionState, StepRecord, View } from "@tollgate/store-engine";

type Key = NonNullable<ReturnType<View["key"]>>;

/** A search for the Sessions that a request may continue, and what it found. */
export interface MatchRead {
  readonly owner: Owner;
  readonly source: string;
  readonly chain: Uint8Array;
  readonly found: readonly SessionState[];
}

/** The rows that a decision read. If any has changed when its change is written, the decision is made again. */
export interface ReadSet {
  readonly keys: readonly (RowName & { readonly key: Key })[];
  readonly budgetsVersion: number | null;
  readonly sessions: readonly SessionState[];
  readonly steps: readonly StepRecord[];
  readonly responses: readonly RowName[];
  readonly matches: readonly MatchRead[];
  /** The idempotency keys that no claim was known for. */
  readonly unclaimed: readonly ClaimKey[];
}

/** Records every read through a view. No rule has to list what it depends on, so none can forget to. */
export function recordReads(view: View): { readonly view: View; readonly looked: ReadSet } {
  const looked = {
    keys: [] as (RowName & { readonly key: Key })[],
    budgetsVersion: null as number | null,
    sessions: [] as SessionState[],
    steps: [] as StepRecord[],
    responses: [] as RowName[],
    matches: [] as MatchRead[],
    unclaimed: [] as ClaimKey[],
  };
  const withSession = (session: SessionState | null): SessionState | null => {
    if (session) looked.sessions.push(session);
    return session;
  };
  const withStep = (step: StepRecord | null): StepRecord | null => {
    if (step) looked.steps.push(step);
    return step;
  };
  const watched: View = {
    ...view,
    budgetsVersion() {
      looked.budgetsVersion = view.budgetsVersion();
      return looked.budgetsVersion;
    },
    key(organizationId, id) {
      const key = view.key(organizationId, id);
      if (key) looked.keys.push({ organizationId, id, key });
      return key;
    },
    session: (organizationId, id) => withSession(view.session(organizationId, id)),
    sessionOfTurn: (organizationId, id) => withSession(view.sessionOfTurn(organizationId, id)),
    recentMatches(owner, source, chain) {
      const found = view.recentMatches(owner, source, chain);
      looked.matches.push({ owner, source, chain, found });
      return found;
    },
    sessionsInOrder(organizationId, mark, limit) {
      const sessions = view.sessionsInOrder(organizationId, mark, limit);
      looked.sessions.push(...sessions);
      return sessions;
    },
    claim(key) {
      const claim = view.claim(key);
      if (!claim) looked.unclaimed.push(key);
      return claim;
    },
    step: (organizationId, id) => withStep(view.step(organizationId, id)),
    response(organizationId, id) {
      const response = view.response(organizationId, id);
      if (response) looked.responses.push({ organizationId, id });
      return response;
    },
  };
  return { view: watched, looked };
}
