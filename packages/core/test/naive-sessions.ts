/** A message of the test, always in the same spelling. */
export interface SentMessage {
  readonly role: string;
  readonly content?: string | null;
  readonly tool_calls?: readonly unknown[];
  readonly tool_call_id?: string;
}

/** The ids and messages of a request, and the model's answer, or null if the Step fails. */
export interface NaiveRequest {
  readonly messages: readonly SentMessage[];
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly reply: SentMessage | null;
}

/** The expected place of a Step; null for an id that must be new. */
export interface Expected {
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly branchedFromSessionId: string | null;
  readonly length: number;
}

interface NaiveSession {
  id: string;
  history: readonly string[];
  latestTurn: string;
  updated: number;
  readonly branchedFrom: NaiveSession | null;
}

/** Section 3 implemented literally, for sequential requests: it compares whole histories text by text. */
export interface NaiveSessions {
  /** Returns the place where the request must go. Called before the ids that the gateway created are known. */
  expected(request: NaiveRequest): Expected;
  /** Records the ids that the gateway created. */
  adopt(made: { readonly sessionId: string; readonly turnId: string }): void;
}

export function createNaiveSessions(): NaiveSessions {
  const sessions: NaiveSession[] = [];
  const turns = new Map<string, NaiveSession>();
  let updates = 0;
  let adopt: NaiveSessions["adopt"] = () => {};

  function find({ sessionId, turnId }: NaiveRequest, texts: readonly string[]) {
    const named = sessions.find(({ id }) => id === sessionId) ?? null;
    if (named) {
      const found = isPrefix(named, texts)
        ? named
        : longest(sessions.filter((other) => descends(other, named) && isPrefix(other, texts)));
      return { found, named };
    }
    const ofTurn = turns.get(turnId ?? "");
    const found =
      ofTurn && isPrefix(ofTurn, texts)
        ? ofTurn
        : longest(sessions.filter((other) => isPrefix(other, texts)));
    return { found, named };
  }

  return {
    expected(request) {
      const texts = collapsed(request.messages);
      const { found, named } = find(request, texts);
      const session = found ?? {
        id: "",
        history: [],
        latestTurn: "",
        updated: 0,
        branchedFrom: named,
      };
      const fresh = texts.slice(session.history.length);
      const beginsTurn = !found || fresh.some((text) => text.includes('"role":"user"'));
      const turnId = beginsTurn ? null : (request.turnId ?? session.latestTurn);
      session.history = request.reply ? collapsed([...request.messages, request.reply]) : texts;
      session.updated = ++updates;
      adopt = (made) => {
        if (!found) sessions.push(session);
        session.id = made.sessionId;
        if (!beginsTurn) return;
        session.latestTurn = made.turnId;
        turns.set(made.turnId, session);
      };
      return {
        sessionId: found?.id ?? null,
        turnId,
        branchedFromSessionId: session.branchedFrom?.id ?? null,
        length: session.history.length,
      };
    },
    adopt: (made) => adopt(made),
  };
}

/** The texts of messages. An assistant message repeated right after itself counts once. */
function collapsed(messages: readonly SentMessage[]): readonly string[] {
  const texts = messages.map((message) => JSON.stringify(message));
  return texts.filter((text, at) => text !== texts[at - 1] || !text.includes('"role":"assistant"'));
}

function isPrefix({ history }: NaiveSession, texts: readonly string[]): boolean {
  return history.every((text, at) => text === texts[at]);
}

function descends(session: NaiveSession, ancestor: NaiveSession): boolean {
  for (let at = session.branchedFrom; at; at = at.branchedFrom) if (at === ancestor) return true;
  return false;
}

function longest(candidates: readonly NaiveSession[]): NaiveSession | null {
  const ranked = [...candidates].sort(
    (a, b) => b.history.length - a.history.length || b.updated - a.updated,
  );
  return ranked[0] ?? null;
}
