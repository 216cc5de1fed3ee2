/** A Session of the reference: its whole history as texts. */
interface ReferenceSession {
  readonly id: string;
  readonly messages: string[];
  readonly branchedFrom: ReferenceSession | null;
  readonly createdBy: string;
  readonly dataClasses: Set<string>;
  latestTurn: string;
  updated: number;
}

interface ReferenceRequest {
  readonly stepId: string;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly messages: readonly { readonly role: string; readonly json: string }[];
  readonly dataClass: string;
  readonly newSessionId: string;
}

interface ReferenceAssignment {
  readonly sessionId: string;
  readonly turnId: string;
  readonly branchedFromSessionId: string | null;
  /** The data classes of the continued or origin Session before the request. */
  readonly handled: readonly string[];
}

/**
 * A literal implementation of section 3 of the specification: compares whole histories message by message, without chains
 * or indexes. A store must behave the same on every tree of messages.
 */
export interface SessionReference {
  open(request: ReferenceRequest): ReferenceAssignment;
  /** The reply joins the Session if its history hasn't changed since the request. */
  settle(stepId: string, reply: readonly string[] | null): void;
  histories(): ReadonlyMap<string, readonly string[]>;
}

export function createSessionReference(): SessionReference {
  const sessions = new Map<string, ReferenceSession>();
  const turns = new Map<string, ReferenceSession>();
  const open = new Map<string, { session: ReferenceSession; sentOn: readonly string[] }>();
  let updates = 0;

  const inFlightFirst = (session: ReferenceSession): boolean =>
    open.get(session.createdBy)?.sentOn.length === session.messages.length;

  const byOmittedIds = (texts: readonly string[]): ReferenceSession | null =>
    best(
      [...sessions.values()]
        .sort((a, b) => b.updated - a.updated)
        .slice(0, 100)
        .filter((session) => isPrefix(session.messages, texts))
        .filter((session) => session.messages.length < texts.length || !inFlightFirst(session)),
    );

  const byNamedSession = (named: ReferenceSession, texts: readonly string[]) => {
    if (isPrefix(named.messages, texts)) return named;
    return best(
      [...sessions.values()].filter(
        (session) => descendsFrom(session, named) && isPrefix(session.messages, texts),
      ),
    );
  };

  return {
    open(request) {
      const texts = request.messages.map(({ json }) => json);
      const named = request.sessionId === null ? null : sessions.get(request.sessionId);
      const ofTurn = request.turnId === null ? null : turns.get(request.turnId);
      const turnMatches = ofTurn && isPrefix(ofTurn.messages, texts) ? ofTurn : null;
      const found = named ? byNamedSession(named, texts) : (turnMatches ?? byOmittedIds(texts));
      const handled = [...(found ?? named ?? none).dataClasses];
      const session = found ?? {
        id: request.newSessionId,
        messages: [],
        branchedFrom: named ?? null,
        createdBy: request.stepId,
        dataClasses: new Set(handled),
        latestTurn: "",
        updated: 0,
      };
      const fresh = request.messages.slice(found ? session.messages.length : 0);
      const beginsTurn = !found || fresh.some(({ role }) => role === "user");
      if (beginsTurn) session.latestTurn = request.stepId;
      const turnId = beginsTurn ? request.stepId : (request.turnId ?? session.latestTurn);
      if (beginsTurn) turns.set(turnId, session);
      session.messages.push(...fresh.map(({ json }) => json));
      session.dataClasses.add(request.dataClass);
      session.updated = ++updates;
      sessions.set(session.id, session);
      open.set(request.stepId, { session, sentOn: texts });
      const branchedFromSessionId = found ? null : (named?.id ?? null);
      return { sessionId: session.id, turnId, branchedFromSessionId, handled };
    },
    settle(stepId, reply) {
      const step = open.get(stepId);
      open.delete(stepId);
      if (!step) return;
      const { session, sentOn } = step;
      session.updated = ++updates;
      const unmoved =
        session.messages.length === sentOn.length && isPrefix(session.messages, sentOn);
      if (reply && unmoved) session.messages.push(...reply);
    },
    histories: () => new Map([...sessions].map(([id, { messages }]) => [id, messages])),
  };
}

const none: Pick<ReferenceSession, "dataClasses"> = { dataClasses: new Set() };

function isPrefix(history: readonly string[], texts: readonly string[]): boolean {
  return history.length > 0 && history.every((text, at) => text === texts[at]);
}

function descendsFrom(session: ReferenceSession, ancestor: ReferenceSession): boolean {
  for (let at = session.branchedFrom; at; at = at.branchedFrom) if (at === ancestor) return true;
  return false;
}

/** The longest Session, or the most recently updated of equally long ones. */
function best(sessions: readonly ReferenceSession[]): ReferenceSession | null {
  const ranked = [...sessions].sort(
    (a, b) => b.messages.length - a.messages.length || b.updated - a.updated,
  );
  return ranked[0] ?? null;
}
