import type { Hold, Step, StepIntent, StepSettlement } from "@tollgate/core/store";
import { describe, expect, it } from "vitest";
import {
  type Change,
  chainHead,
  type HoldRecord,
  moveCounter,
  openStep,
  type SessionState,
  type StepRecord,
  settleStep,
} from "../src/index.ts";
import * as intents from "./step-intents.ts";
import { viewOf } from "./view.ts";

const session: SessionState = {
  id: "session",
  organizationId: "acme",
  userId: "ada",
  keyId: "key",
  source: "api",
  head: chainHead(chainOf(1)),
  length: 1,
  dataClasses: ["D0_PUBLIC"],
  createdAt: 1,
  updatedAt: 1,
  branchedFromSessionId: null,
  commonLength: 0,
  rootSessionId: null,
  historyFromSessionId: null,
  updated: 5,
  inFlight: false,
  turnId: "turn",
};

/** Chain values, each filled with one digit. */
function chainOf(...digits: readonly number[]): Uint8Array {
  return Buffer.concat(digits.map((digit) => Buffer.alloc(32, digit)));
}

/** A Step of two messages. Each chain value repeats the digit of its position. */
function stepIntent(holds: readonly Hold[] = []): StepIntent {
  const { transcript, ...intent } = intents.stepIntent("step", holds);
  const messages = ['{"role":"user"}', '{"role":"user","content":"more"}'];
  return {
    ...intent,
    transcript: { ...transcript, chain: chainOf(1, 2), messages, lastUserMessage: 2 },
  };
}

/** The Step's settlement, with a reply of one message. */
function stepSettlement(chain: Uint8Array = chainOf(3)): StepSettlement {
  const { reply, ...settlement } = intents.stepSettlement("step");
  return { ...settlement, reply: reply && { ...reply, chain } };
}

function hold(budgetId: string, limit: number): Hold {
  return { ...intents.hold(limit), budgetId };
}

function written(change: Change): readonly string[] {
  return change.map(({ write }) => write);
}

/** The row of the only operation of this kind. */
function rowOf(change: Change, write: Change[number]["write"]): unknown {
  const rows = change.filter((operation) => operation.write === write);
  expect(rows).toHaveLength(1);
  return rows[0]?.row;
}

/** The Step and the Session after the intent has opened the Step. */
function opened(): { readonly step: StepRecord; readonly sessions: readonly SessionState[] } {
  const { change } = openStep(viewOf({}), stepIntent([hold("a", 100)]));
  const rows: { step?: StepRecord; session?: SessionState } = {};
  for (const operation of change) {
    if (operation.write === "insert step") rows.step = operation.row;
    if (operation.write === "insert session") rows.session = operation.row;
  }
  if (!rows.step || !rows.session) throw new Error("nothing was opened");
  return { step: rows.step, sessions: [rows.session] };
}

describe("opening a Step", () => {
  it("returns the same result for the same view", () => {
    const view = viewOf({ sessions: [session] });
    const intent = stepIntent([hold("a", 100)]);
    const [first, second] = [openStep(view, intent), openStep(view, intent)];
    expect(second.result).toEqual(first.result);
    expect(second.change).toEqual(first.change);
  });

  it("writes the Step first, so an existing Step stops the change", () => {
    const { change } = openStep(viewOf({}), stepIntent([hold("a", 100)]));
    expect(written(change)).toEqual([
      "insert step",
      "insert session",
      "insert turn",
      "insert part",
      "insert decision",
      "insert leaf",
      "move counter",
      "insert hold",
    ]);
  });

  it("continues the longest Session, and the most recently updated of two equally long ones", () => {
    const sessions = [
      { ...session, id: "older", updated: 4 },
      session,
      { ...session, id: "longer", length: 2, head: chainHead(chainOf(1, 2)), updated: 1 },
      { ...session, id: "longer in flight", length: 2, updated: 9, inFlight: true },
    ];
    const intent = stepIntent();
    const sessionOf = (rows: readonly SessionState[]) =>
      openStep(viewOf({ sessions: rows }), intent).result;
    expect(sessionOf(sessions)).toMatchObject({ sessionId: "longer" });
    expect(sessionOf(sessions.slice(0, 2))).toMatchObject({ sessionId: "session" });
  });

  it("adds up holds on one counter, and writes nothing if the second doesn't fit", () => {
    const counters = [
      { ...counterOf("a"), settled: 70, held: 5 },
      { ...counterOf("b"), settled: 70, held: 5 },
    ];
    const intent = stepIntent([hold("b", 100), hold("a", 94), hold("a", 94)]);
    expect(openStep(viewOf({ counters }), intent)).toEqual({
      result: {
        opened: false,
        refusal: { code: "budget_exceeded", hold: hold("a", 94), left: 9 },
      },
      change: [],
    });
  });

  it("takes a soft hold beyond its limit, and reports what the store finds over its limit", () => {
    const counters = [{ ...counterOf("a"), settled: 95, held: 0 }];
    const soft: Hold = { ...hold("a", 100), mode: "soft" };
    const { result, change, resultIfOverLimit } = openStep(
      viewOf({ counters }),
      stepIntent([soft, hold("b", 10)]),
    );
    expect(result).toMatchObject({ opened: true });
    const moves = change.flatMap((one) => (one.write === "move counter" ? [one.row] : []));
    expect(moves).toMatchObject([
      { budgetId: "a", held: 10, taken: 10, limit: null },
      { budgetId: "b", held: 10, taken: 10, limit: 10 },
    ]);
    expect(resultIfOverLimit?.(counterKey("b"), 3)).toEqual({
      opened: false,
      refusal: { code: "budget_exceeded", hold: hold("b", 10), left: 3 },
    });
    expect(() => resultIfOverLimit?.(counterKey("c"), 3)).toThrow("No hold moved this counter.");
  });

  it("moves a pace from its floor at once, and counts no hold of requests as open", () => {
    const pace = (budgetId: string, unit: "requests_pace" | "tokens_pace"): Hold => ({
      ...hold(budgetId, 1_050),
      unit,
      floor: 1_000,
    });
    const counters = [
      { ...counterKey("b"), unit: "tokens_pace" as const, settled: 1_035, held: 0 },
    ];
    const holds = [pace("a", "requests_pace"), pace("b", "tokens_pace"), hold("c", 100)];
    const { result, change } = openStep(viewOf({ counters }), stepIntent(holds));
    expect(result).toMatchObject({ opened: true, paces: [1_010, 1_045] });
    expect(rowOf(change, "insert step")).toMatchObject({ holds: 2 });
    const taken = change.flatMap((one) => (one.write === "insert hold" ? [one.row.settled] : []));
    expect(taken).toEqual([10, null, null]);
    const [{ row: step } = {}] = change.filter((one) => one.write === "insert step");
    const moved = counters.map((counter) => ({ ...counter, settled: 1_060 }));
    const twice = [...holds, pace("b", "tokens_pace")];
    const repeat = openStep(viewOf({ ...(step && { step }), counters: moved }), stepIntent(twice));
    expect(repeat).toMatchObject({ change: [], result: { opened: true, paces: [0, 1_060] } });
    const late = [pace("b", "tokens_pace"), pace("b", "tokens_pace")];
    expect(openStep(viewOf({ counters }), stepIntent(late)).result).toMatchObject({
      opened: false,
      refusal: { left: 5 },
    });
    const ahead = counters.map((counter) => ({ ...counter, settled: 1_060 }));
    expect(
      openStep(viewOf({ counters: ahead }), stepIntent([pace("b", "tokens_pace")])).result,
    ).toMatchObject({ refusal: { left: -10 } });
  });

  it("refuses a hold of 0 on a hard limit of 0", () => {
    const nothing = { ...hold("a", 0), amount: 0 };
    expect(openStep(viewOf({}), stepIntent([nothing])).result).toMatchObject({ opened: false });
  });
});

describe("settling a Step", () => {
  it("joins its reply only to a Session unchanged since the request", () => {
    const { step, sessions } = opened();
    const reply = (rows: readonly SessionState[]) =>
      rowOf(settleStep(viewOf({ step, sessions: rows }), stepSettlement()).change, "insert part");
    expect(reply(sessions)).toMatchObject({ position: 2, count: 1 });
    const moved = sessions.map((row) => ({ ...row, head: chainHead(chainOf(4)) }));
    expect(reply(moved)).toMatchObject({ position: null, count: 1 });
  });

  it("settles holds at the amount spent, up to the largest safe integer", () => {
    const { step, sessions } = opened();
    const held: HoldRecord = {
      ...counterKey("a"),
      organizationId: "acme",
      stepId: "step",
      attempt: 1,
      unit: "tokens",
      amount: 10,
      settled: null,
    };
    const settled = Number.MAX_SAFE_INTEGER - 3;
    const counters = [{ ...counterOf("a"), settled, held: 10 }];
    const view = viewOf({ step, sessions, holds: [held], counters });
    const { change } = settleStep(view, stepSettlement());
    expect(rowOf(change, "settle hold")).toEqual({ ...held, settled: 7 });
    const moves = change.flatMap((one) => (one.write === "move counter" ? [one.row] : []));
    expect(moves).toMatchObject([{ settled: 7, held: -10, taken: 0, limit: null }]);
    expect(moves.map((move) => moveCounter(counters[0] ?? null, move))).toMatchObject([
      { settled: Number.MAX_SAFE_INTEGER, held: 0 },
    ]);
  });

  it("changes nothing if the Step is settled, and returns its outcome", () => {
    const { step, sessions } = opened();
    const failed: Step = { ...step.step, outcome: "failed" };
    const view = viewOf({ step: { ...step, step: failed }, sessions });
    expect(settleStep(view, stepSettlement())).toEqual({
      result: { settled: false, outcome: "failed" },
      change: [],
    });
  });

  it("rejects a chain of incomplete values", () => {
    const { step, sessions } = opened();
    const settle = () => settleStep(viewOf({ step, sessions }), stepSettlement(new Uint8Array(33)));
    expect(settle).toThrow("32 bytes for each message");
  });
});

function counterKey(budgetId: string) {
  return { budgetId, subject: "", periodStart: 0 };
}

function counterOf(budgetId: string) {
  return { ...counterKey(budgetId), unit: "tokens" as const };
}
