import { describe, expect, it } from "vitest";
import { Admission, type AdmissionLimits } from "./admission.ts";

const limits: AdmissionLimits = {
  openRequests: 100,
  bytesInFlight: 400,
  bytesInFlightPerKey: 200,
  openings: 1,
  waiting: 10,
  loopDelay: 10,
  heapPercent: 80,
  turn: 5_000,
};

function create(more: Partial<AdmissionLimits> = {}) {
  const now = { delay: 0, heap: 0 };
  const load = { loopDelay: () => now.delay, heapShare: () => now.heap };
  const clock = { now: () => 0, monotonic: () => 0, after: () => () => {} };
  const admission = new Admission({ limits: { ...limits, ...more }, clock, load });
  const admits = (key: string, bytes = 0): boolean => {
    try {
      admission.ticketFor(key).admit(bytes);
      return true;
    } catch {
      return false;
    }
  };
  return { now, admission, admits };
}

describe("a turn", () => {
  it("ends once, whether the request waited for it or not", async () => {
    const { admission } = create();
    const [first, ...others] = ["1", "2", "3", "4"].map(() => admission.ticketFor("key"));
    expect(first?.turn("openings")).toBeNull();
    const come: number[] = [];
    for (const [at, ticket] of others.entries()) ticket.turn("openings")?.then(() => come.push(at));
    const endTwice = async (at: number): Promise<readonly number[]> => {
      const ticket = at < 0 ? first : others[at];
      ticket?.endTurn();
      ticket?.endTurn();
      await new Promise((resolve) => setImmediate(resolve));
      return [...come];
    };
    expect(await endTwice(-1)).toEqual([0]);
    expect(await endTwice(0)).toEqual([0, 1]);
    // Leaves the line without a turn.
    expect(await endTwice(2)).toEqual([0, 1]);
    expect(await endTwice(1)).toEqual([0, 1]);
  });
});

describe("room for a request", () => {
  it("is refused from the middle between the heap's limit and a full heap on", () => {
    const { now, admits } = create();
    expect(
      [0.79, 0.8, 0.89, 0.9].map((heap) => Object.assign(now, { heap }) && admits("a")),
    ).toEqual([true, true, true, false]);
  });

  it("is refused to a busy key at eight times the permitted delay", () => {
    const { now, admits } = create();
    now.delay = 80;
    expect([admits("a"), admits("a"), admits("b")]).toEqual([true, false, true]);
    now.delay = 79;
    expect(admits("a")).toBe(true);
  });

  it("is left for other keys in the last quarter", () => {
    const { admits } = create({ openRequests: 8 });
    const first = Array.from({ length: 7 }, () => admits("a"));
    expect(first).toEqual([true, true, true, true, true, true, false]);
    expect([admits("b"), admits("b"), admits("b")]).toEqual([true, true, false]);
  });

  it("has a bound in bytes for each key and for all, except for a single request", () => {
    const { admission, admits } = create();
    expect([admits("a", 200), admits("a", 1), admits("a", 0)]).toEqual([true, false, true]);
    const others = [admits("b", 101), admits("b", 99), admits("c", 99), admits("d", 1)];
    expect(others).toEqual([true, false, true, false]);
    const alone = create();
    expect(alone.admits("a", 5_000)).toBe(true);
    expect(alone.admits("b", 1)).toBe(false);
    expect(admission.admitted).toBe(4);
  });

  it("is counted for each key as a whole, while thousands of others are busy", () => {
    const { admission, admits } = create({ openRequests: 10_000 });
    const ticket = admission.ticketFor("a");
    for (let other = 0; other < 2_100; other++) admits(`other-${other}`);
    expect(admits("a", 200)).toBe(true);
    expect(() => ticket.admit(1)).toThrow(/gateway is overloaded/);
  });

  it("is there again when answers have ended", () => {
    const { admission, admits } = create();
    const ticket = admission.ticketFor("a");
    ticket.admit(150);
    ticket.grow(50);
    expect(() => ticket.grow(1)).not.toThrow();
    ticket.release();
    ticket.release();
    expect(admission.admitted).toBe(0);
    expect([admits("a", 200), admits("a", 1)]).toEqual([true, false]);
  });
});
