import { expect, it } from "vitest";
import { lineageOf, openStep, type SessionState, transcriptPart, type View } from "../src/index.ts";
import { session } from "./session.ts";
import { digestOf, stepIntent } from "./step-intents.ts";
import { viewOf } from "./view.ts";

/** The ids and ends of the segments of the last of these Sessions. */
function lineage(...sessions: readonly SessionState[]): readonly (readonly [string, number])[] {
  const last = sessions.at(-1);
  const view = {
    session: (_: string, id: string) => sessions.find((one) => one.id === id) ?? null,
  };
  return last ? lineageOf(view, last).map(({ session: { id }, end }) => [id, end]) : [];
}

it("a history is read from the Sessions that store it, however many lie between them", () => {
  const root = session("root", 9);
  const middle = session("middle", 7, { historyFromSessionId: "root", commonLength: 5 });
  const leaf = session("leaf", 8, { historyFromSessionId: "middle", commonLength: 6 });
  expect(lineage(root)).toEqual([["root", 9]]);
  expect(lineage(root, middle)).toEqual([
    ["root", 5],
    ["middle", 7],
  ]);
  expect(lineage(root, middle, leaf)).toEqual([
    ["root", 5],
    ["middle", 6],
    ["leaf", 8],
  ]);
  // It branched off before its origin did, so it begins with messages of the first one alone.
  const early = session("early", 6, {
    branchedFromSessionId: "middle",
    historyFromSessionId: "root",
    commonLength: 3,
  });
  expect(lineage(root, middle, early)).toEqual([
    ["root", 3],
    ["early", 6],
  ]);
  const apart = session("apart", 2, { branchedFromSessionId: "root", commonLength: 0 });
  expect(lineage(root, apart)).toEqual([["apart", 2]]);
});

it("a thousand branches, each of the last, are not read to branch once more", () => {
  const sessions = new Map<string, SessionState>();
  let reads = 0;
  const counting: View = {
    ...viewOf({}),
    session(_, id) {
      reads++;
      return sessions.get(id) ?? null;
    },
    // The first Session stores the message that all histories begin with.
    chainBefore({ id, commonLength }, end) {
      const values = commonLength === 0 ? [digestOf("shared"), digestOf(id)] : [digestOf(id)];
      return Buffer.concat(values).subarray(0, (end - commonLength) * 32);
    },
  };
  for (let at = 0; at <= 1000; at++) {
    reads = 0;
    const { transcript, ...intent } = stepIntent(`${at}`);
    const chain = Buffer.concat([digestOf("shared"), digestOf(`session of ${at}`)]);
    const sessionId = at === 0 ? null : `session of ${at - 1}`;
    const { change } = openStep(counting, {
      ...intent,
      transcript: { ...transcript, messages: ["{}", "{}"], chain, sessionId },
    });
    for (const { write, row } of change) if (write === "insert session") sessions.set(row.id, row);
  }
  expect(sessions.size).toBe(1001);
  expect(sessions.get("session of 1000")).toMatchObject({
    branchedFromSessionId: "session of 999",
    historyFromSessionId: "session of 0",
    rootSessionId: "session of 0",
    commonLength: 1,
  });
  expect(reads).toBeLessThan(10);
});

it("a rewind reads a history from its end, however many Sessions store the rest", () => {
  const sessions = new Map<string, SessionState>();
  const own = new Map<string, Uint8Array>();
  const shared = Array.from({ length: 300 }, (_, at) => digestOf(`message ${at}`));
  let reads = 0;
  const counting: View = {
    ...viewOf({}),
    session(_, id) {
      reads++;
      return sessions.get(id) ?? null;
    },
    chainBefore({ id, commonLength }, end) {
      reads++;
      return (own.get(id) ?? new Uint8Array()).subarray(0, (end - commonLength) * 32);
    },
  };
  const branchOf = (name: string, from: string | null, length: number) => {
    const { transcript, ...intent } = stepIntent(name);
    const values = [...shared.slice(0, length), digestOf(`end of ${name}`)];
    const { change } = openStep(counting, {
      ...intent,
      transcript: {
        ...transcript,
        messages: values.map(() => "{}"),
        chain: Buffer.concat(values),
        sessionId: from && `session of ${from}`,
      },
    });
    const row = change.find(({ write }) => write === "insert session")?.row as SessionState;
    sessions.set(row.id, row);
    own.set(row.id, Buffer.concat(values.slice(row.commonLength)));
    return row;
  };
  // Each shares one more message with the last one, so each stores a message of the history.
  for (let at = 0; at < 300; at++) branchOf(`${at}`, at === 0 ? null : `${at - 1}`, at + 1);
  reads = 0;
  const rewound = { commonLength: 300, historyFromSessionId: "session of 299" };
  expect(branchOf("rewound", "299", 300)).toMatchObject(rewound);
  expect(reads).toBeLessThan(10);
  const early = { commonLength: 2, historyFromSessionId: "session of 1" };
  expect(branchOf("early", "299", 2)).toMatchObject(early);
  const apart = { commonLength: 0, historyFromSessionId: null };
  expect(branchOf("apart", "299", 0)).toMatchObject(apart);
});

it("hundreds of branches that descend from others are not all traced to the root", () => {
  const generations = 100;
  const root = session("root", 1);
  const named = session("named", 1, { rootSessionId: "root", branchedFromSessionId: "root" });
  const sessions = new Map([root, named].map((one) => [one.id, one]));
  const lineFrom = (from: string, name: string): SessionState => {
    let last = from;
    for (let at = 1; at < generations; at++) {
      const branch = { rootSessionId: "root", branchedFromSessionId: last };
      last = `${name} ${at}`;
      sessions.set(last, session(last, 1, branch));
    }
    return session(name, 1, { rootSessionId: "root", branchedFromSessionId: last });
  };
  const others = Array.from({ length: 100 }, (_, at) => lineFrom("root", `other ${at}`));
  const own = lineFrom("named", "own");
  let reads = 0;
  const followedFrom = (matches: readonly SessionState[]) => {
    reads = 0;
    const view: View = {
      ...viewOf({}),
      session(_, id) {
        reads++;
        return sessions.get(id) ?? null;
      },
      matchingBranches: () => matches,
    };
    const { transcript, ...intent } = stepIntent("next");
    const named = { ...transcript, messages: ["{}"], chain: digestOf("x"), sessionId: "named" };
    const { result } = openStep(view, { ...intent, transcript: named });
    return result.opened ? result.sessionId : null;
  };
  expect(followedFrom([others[0], own].flatMap((one) => one ?? []))).toBe("own");
  expect(followedFrom(others)).toBe("session of next");
  expect(reads).toBeLessThan(320);
});

it("a part of a transcript ends where a branch diverges", () => {
  const content = Buffer.from('[{"a":1},{"b":"]"},{"c":[2]}]');
  const part = { stepId: "s", kind: "request", count: 3, position: 4, content } as const;
  const upTo = (end: number) => {
    const { content: text, ...rest } = transcriptPart(part, end);
    return { ...rest, text: text && Buffer.from(text).toString() };
  };
  const head = { stepId: "s", kind: "request", from: 4 };
  expect(upTo(5)).toEqual({ ...head, count: 1, text: '[{"a":1}]' });
  expect(upTo(6)).toEqual({ ...head, count: 2, text: '[{"a":1},{"b":"]"}]' });
  expect(upTo(9)).toEqual({ ...head, count: 3, text: content.toString() });
  // A whole part isn't copied.
  expect(transcriptPart(part, 7).content).toBe(content);
  expect(transcriptPart({ ...part, kind: "reply", content: null }, 5)).toEqual({
    ...head,
    kind: "reply",
    count: 1,
    content: null,
  });
});
