import { expect, it } from "vitest";
import { lineageOf, type SessionState, transcriptPart } from "../src/index.ts";

const session = (id: string, length: number, branch: Partial<SessionState> = {}): SessionState => ({
  id,
  organizationId: "acme",
  userId: "ada",
  keyId: "key",
  source: "api",
  head: "",
  length,
  dataClasses: [],
  createdAt: 0,
  updatedAt: 0,
  branchedFromSessionId: null,
  commonLength: 0,
  updated: 0,
  inFlight: false,
  turnId: "turn",
  ...branch,
});

/** The ids and ends of the segments of the last of these Sessions. */
function lineage(...sessions: readonly SessionState[]): readonly (readonly [string, number])[] {
  const last = sessions.at(-1);
  const view = {
    session: (_: string, id: string) => sessions.find((one) => one.id === id) ?? null,
  };
  return last ? lineageOf(view, last).map(({ session: { id }, end }) => [id, end]) : [];
}

it("the lineage of a Session begins with the history that it shares with its origins", () => {
  const root = session("root", 9);
  const middle = session("middle", 7, { branchedFromSessionId: "root", commonLength: 5 });
  const leaf = session("leaf", 6, { branchedFromSessionId: "middle", commonLength: 3 });
  expect(lineage(root)).toEqual([["root", 9]]);
  expect(lineage(root, middle)).toEqual([
    ["root", 5],
    ["middle", 7],
  ]);
  // It branched off before its origin did, so it shares less with the first one.
  expect(lineage(root, middle, leaf)).toEqual([
    ["root", 3],
    ["middle", 3],
    ["leaf", 6],
  ]);
  const apart = session("apart", 2, { branchedFromSessionId: "root", commonLength: 0 });
  expect(lineage(root, apart)).toEqual([["apart", 2]]);
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
