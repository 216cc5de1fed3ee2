import type { EvidenceLeaf, RemovedSteps } from "@tollgate/core/store";
import { describe, expect, it } from "vitest";
import {
  type HeldContent,
  type SessionState,
  sweepResponses,
  sweepSteps,
  sweepTranscripts,
  type View,
} from "../src/index.ts";
import { viewOf } from "./view.ts";

const view = viewOf({});
const leafOf = ({ organizationId }: Pick<RemovedSteps, "organizationId">): EvidenceLeaf => ({
  id: `leaf of ${organizationId}`,
  organizationId,
  kind: "activity.removed",
  at: 1_000,
  meta: "{}",
  hash: new Uint8Array(32),
});
const written = (change: readonly { readonly write: string; readonly row: unknown }[]) =>
  change.map(({ write, row }) => [write, row]);

describe("a sweep of responses", () => {
  const response = (id: string) => ({ organizationId: "acme", id });
  const claim: ReturnType<View["expiredClaims"]>[number] = {
    organizationId: "acme",
    keyId: "key",
    endpoint: "responses",
    keySha256: "00",
    stepId: "s",
  };

  it("removes claims with what its limit leaves", () => {
    const asked: number[] = [];
    const expiring: View = {
      ...view,
      expiredResponses: (_, limit) =>
        ["r1", "r2"].slice(0, limit).map((id) => ({ ...response(id), builtOn: null })),
      expiredClaims: (_, limit) => {
        asked.push(limit);
        return [claim];
      },
    };
    expect(sweepResponses(expiring, { at: 1, limit: 5 })).toEqual({
      result: 3,
      change: [
        { write: "remove response", row: response("r2") },
        { write: "remove response", row: response("r1") },
        { write: "remove claim", row: claim },
      ],
    });
    expect(asked).toEqual([3]);
    expect(sweepResponses(expiring, { at: 1, limit: 2 }).result).toBe(2);
    expect(asked).toEqual([3]);
  });
});

describe("a sweep of Steps", () => {
  const old: Readonly<Record<string, readonly string[]>> = {
    acme: ["a1", "a2"],
    beta: ["b1"],
    core: ["c1"],
  };
  const aged: View = {
    ...view,
    organizationsOfOldSteps: (before, { from }) => ({
      due: before === 60 ? Object.keys(old).filter((id) => id >= from) : [],
      next: "page 2",
    }),
    oldSteps: (organizationId, before, limit) =>
      before === 60 ? (old[organizationId] ?? []).slice(0, limit) : [],
  };
  const sweep = { from: "", at: 100, keep: 40, unfolded: new Map(), leaf: leafOf };

  it("stops at its limit, and goes on with the same organization", () => {
    const { result, change } = sweepSteps(aged, { ...sweep, limit: 3 });
    expect(result).toEqual({ removed: 3, next: "beta" });
    const rest = sweepSteps(aged, { ...sweep, from: "beta", limit: 3 }).result;
    expect(rest).toEqual({ removed: 2, next: "page 2" });
    expect(written(change)).toEqual([
      ["remove step", { organizationId: "acme", id: "a1" }],
      ["remove step", { organizationId: "acme", id: "a2" }],
      ["insert leaf", leafOf({ organizationId: "acme" })],
      ["remove step", { organizationId: "beta", id: "b1" }],
      ["insert leaf", leafOf({ organizationId: "beta" })],
    ]);
  });

  it("goes on with the next page once nothing is left, and records the number of each organization", () => {
    const counts: RemovedSteps[] = [];
    const leaf = (removed: RemovedSteps) => {
      counts.push(removed);
      return leafOf(removed);
    };
    expect(sweepSteps(aged, { ...sweep, leaf, limit: 5 }).result).toEqual({
      removed: 4,
      next: "page 2",
    });
    expect(counts.map(({ count }) => count)).toEqual([2, 1, 1]);
  });
});

describe("a sweep of transcripts", () => {
  const session = (
    id: string,
    updatedAt: number,
    historyFromSessionId: string | null = null,
  ): SessionState => ({
    id,
    organizationId: "acme",
    userId: "ada",
    keyId: "key",
    source: "api",
    head: "",
    length: 1,
    dataClasses: [],
    createdAt: 0,
    updatedAt,
    branchedFromSessionId: historyFromSessionId,
    commonLength: 0,
    rootSessionId: null,
    historyFromSessionId,
    updated: updatedAt,
    inFlight: false,
    turnId: "turn",
  });
  const sessions = [
    session("origin", 1),
    session("s1", 58, "origin"),
    session("s2", 59),
    session("used", 60),
  ];
  const name = { of: "part", stepId: "step", place: 0 } as const;
  const content = { ...name, bytes: 1 };
  const used: View = {
    ...view,
    session: (_, id) => sessions.find((one) => one.id === id) ?? null,
    organizationsOfOldSessions: (before) => ({
      due: before === 60 ? [{ organizationId: "acme", mark: 1 }] : [],
      next: null,
    }),
    sessionsInOrder: (_, mark, limit) =>
      sessions.filter(({ updated }) => updated > mark).slice(0, limit),
    contents: () => [content],
    isNeededSince: ({ id }, time) => id === "s2" && time <= 50,
  };
  const sweep = { from: "", at: 100, keep: 40, leaf: leafOf };
  const erase = (id: string) => ["erase session", { organizationId: "acme", id, contents: [name] }];
  const mark = (updated: number) => ["mark erased", { organizationId: "acme", updated }];

  it("erases the Sessions that were last used before a time, and those that their histories begin with", () => {
    const { result, change } = sweepTranscripts(used, { ...sweep, limit: 9 });
    expect(result).toEqual({ removed: 3, next: null });
    expect(written(change)).toEqual([
      erase("s1"),
      erase("origin"),
      erase("s2"),
      mark(59),
      ["insert leaf", leafOf({ organizationId: "acme" })],
    ]);
  });

  it("stops at its limit, and goes on with the same organization", () => {
    const { result, change } = sweepTranscripts(used, { ...sweep, limit: 1 });
    expect(result).toEqual({ removed: 2, next: "acme" });
    expect(written(change)).toContainEqual(mark(58));
  });

  describe.each([
    ["contents", 500, 1],
    ["bytes", 4, 1_048_576],
  ])("of too many %s for one chunk", (_, fit, bytes) => {
    /** Contents of `s2` that aren't erased yet. */
    let left: readonly HeldContent[] = [];
    const long: View = {
      ...used,
      sessionsInOrder: (organizationId, mark, limit) =>
        used.sessionsInOrder(organizationId, mark, limit).filter(({ id }) => id !== "s1"),
      contents: ({ id }, limit) => (id === "s2" ? left.slice(0, limit) : [content]),
    };
    const sweepOnce = (at = 100) => {
      const { result, change } = sweepTranscripts(long, { ...sweep, at, limit: 9 });
      const places = change.flatMap((one) =>
        one.write === "erase session" && one.row.id === "s2" ? one.row.contents : [],
      );
      left = left.slice(places.length);
      return { result, erased: places.length, writes: written(change).map(([write]) => write) };
    };

    it("erases what fits, with a leaf each time, and marks the Session at the end", () => {
      left = Array.from({ length: 2 * fit + 1 }, (_, place) => ({ ...name, place, bytes }));
      const part = { result: { removed: 0, next: "acme" }, erased: fit };
      expect(sweepOnce()).toEqual({ ...part, writes: ["erase session", "insert leaf"] });
      expect(sweepOnce()).toEqual({ ...part, writes: ["erase session", "insert leaf"] });
      expect(sweepOnce()).toEqual({
        result: { removed: 1, next: null },
        erased: 1,
        writes: ["erase session", "mark erased", "insert leaf"],
      });
    });

    it("ends with a Session that fits exactly", () => {
      left = Array.from({ length: fit }, (_, place) => ({ ...name, place, bytes }));
      expect(sweepOnce().result).toEqual({ removed: 1, next: null });
    });
  });

  it("erases a content above the limit alone", () => {
    const large: View = { ...used, contents: () => [{ ...name, bytes: 9_000_000 }] };
    const { result, change } = sweepTranscripts(large, { ...sweep, limit: 9 });
    expect(result).toEqual({ removed: 1, next: "acme" });
    expect(written(change)).toEqual([
      erase("s1"),
      ["insert leaf", leafOf({ organizationId: "acme" })],
    ]);
  });

  it("records nothing if the Sessions hold nothing", () => {
    const empty: View = { ...used, contents: () => [] };
    const { result, change } = sweepTranscripts(empty, { ...sweep, limit: 9 });
    expect(result).toEqual({ removed: 0, next: null });
    expect(written(change)).toEqual([mark(59)]);
  });

  it("leaves a Session alone that a branch in use needs", () => {
    const needed: View = { ...used, isNeededSince: ({ id }) => id === "s1" };
    const { result } = sweepTranscripts(needed, { ...sweep, limit: 9 });
    expect(result).toEqual({ removed: 1, next: null });
  });

  it("looks once for the branches in use of an origin that many share", () => {
    const looked: string[] = [];
    const branches = ["b1", "b2", "b3"].map((id, at) => session(id, 50 + at, "origin"));
    const shared: View = {
      ...used,
      session: (_, id) => sessions.find((one) => one.id === id) ?? null,
      sessionsInOrder: () => branches,
      isNeededSince({ id }) {
        looked.push(id);
        return id === "origin";
      },
    };
    const { result } = sweepTranscripts(shared, { ...sweep, limit: 9 });
    expect(result).toEqual({ removed: 3, next: null });
    expect(looked).toEqual(["b1", "origin", "b2", "b3"]);
    // Once the origin is erased, the sweep doesn't check again if it is needed.
    looked.length = 0;
    sweepTranscripts(
      { ...shared, contents: ({ id }) => (id === "origin" ? [] : [content]) },
      { ...sweep, limit: 9 },
    );
    expect(looked).toEqual(["b1", "b2", "b3"]);
  });

  it("walks a line of branches without content once", () => {
    const line = ["b3", "b2", "b1", "b0"].map((id, at) =>
      session(id, 50 + at, id === "b0" ? null : `b${Number(id.slice(1)) - 1}`),
    );
    const read: string[] = [];
    const empty: View = {
      ...used,
      session(_, id) {
        read.push(id);
        return line.find((one) => one.id === id) ?? null;
      },
      sessionsInOrder: () => line,
      contents: () => [],
    };
    expect(sweepTranscripts(empty, { ...sweep, limit: 9 }).result.removed).toBe(0);
    expect(read).toEqual(["b2", "b1", "b0"]);
  });
});
