import { describe, expect, it } from "vitest";
import type { CompletionEvent } from "../domain/completion-event.ts";
import { defaultLimits } from "../domain/limits.ts";
import type { Json } from "../kernel/stable-json.ts";
import { AnswerIntake } from "./answer-intake.ts";

const entry = { token: "a", logprob: -0.5, bytes: [97], top_logprobs: [] };
const logprobs = { content: Array.from({ length: 10 }, () => entry) };

const noState = { values: 0, bytes: 0, sealedTexts: 0 };

/** The result of so many events with log probabilities, within 1,000 bytes. */
function failureAfter(events: number, isKept: boolean): string | null {
  const intake = new AnswerIntake({ ...defaultLimits, answerBytes: 1_000 }, isKept);
  for (let event = 0; event < events; event++) intake.take([{ type: "logprobs", logprobs }]);
  return intake.failure(0, noState)?.reason ?? null;
}

describe("the log probabilities of one answer", () => {
  it("are limited if the answer is written whole at its end", () => {
    expect(failureAfter(1, true)).toBeNull();
    expect(failureAfter(10, true)).toBe("too_many_logprobs");
  });

  it("have no limit of their own in a stream of chunks", () => {
    expect(failureAfter(1_000, false)).toBeNull();
  });
});

describe("the limits of one answer", () => {
  const limits = { ...defaultLimits, answerParts: 2, tools: 2, depth: 2, answerBytes: 100 };
  const text = (of: string): CompletionEvent => ({ type: "text-delta", text: of });
  const reasoning: CompletionEvent = { type: "reasoning-delta", text: "r" };
  const call = (index: number): CompletionEvent => ({
    type: "tool-call-started",
    index,
    id: `call_${index}`,
    name: "f",
  });
  const nested = (depth: number): Json => (depth === 0 ? "x" : [nested(depth - 1)]);

  /** The reason of the failure, and how many events it let pass. */
  function taken(events: readonly CompletionEvent[], within = limits) {
    const intake = new AnswerIntake(within, true);
    const passed = intake.take(events).length;
    return [intake.failure(0, noState)?.reason ?? null, passed];
  }

  it.each<readonly [string, readonly CompletionEvent[], string | null, number]>([
    ["two parts", [text("a"), text("b"), reasoning, reasoning, text("")], null, 4],
    ["three parts", [text("a"), reasoning, text("b"), reasoning], "too_many_parts", 2],
    ["calls and texts as parts", [call(0), text("a"), call(1)], "too_many_parts", 2],
    ["two calls", [call(0), call(1)], null, 2],
    ["deep log probabilities", [{ type: "logprobs", logprobs: nested(3) }], "too_deep", 0],
    ["shallow log probabilities", [{ type: "logprobs", logprobs: nested(2) }], null, 1],
  ])("count %s", (_, events, reason, passed) => {
    expect(taken(events)).toEqual([reason, passed]);
  });

  it("count tool calls apart from parts", () => {
    const roomy = { ...limits, answerParts: 9 };
    expect(taken([call(0), call(1)], roomy)).toEqual([null, 2]);
    expect(taken([text("a"), call(0), call(1), call(2)], roomy)).toEqual([
      "too_many_tool_calls",
      3,
    ]);
  });

  it("bound state by its depth, its values and its bytes", () => {
    const state = (value: Json): CompletionEvent => ({ type: "state", fields: { a: value } });
    expect(taken([state(nested(100))])).toEqual(["too_deep", 0]);
    expect(taken([state(Array.from({ length: 100_000 }, () => 0))])).toEqual(["too_much_state", 0]);
    expect(taken([state(nested(3))])).toEqual([null, 1]);
    const within = new AnswerIntake(limits, true);
    expect(within.failure(100, { values: 0, bytes: 1, sealedTexts: 0 })).toBeNull();
    const wide = new AnswerIntake(limits, true);
    expect(wide.failure(0, { values: 1_000_000, bytes: 0, sealedTexts: 0 })?.reason).toBe(
      "too_much_state",
    );
    const long = new AnswerIntake(limits, true);
    expect(long.failure(0, { values: 0, bytes: 100_000_000, sealedTexts: 0 })?.reason).toBe(
      "too_much_state",
    );
    const sealed = new AnswerIntake(limits, true);
    const many = { values: 0, bytes: 0, sealedTexts: 4_097 };
    expect(sealed.failure(0, many)?.reason).toBe("too_much_state");
    const large = new AnswerIntake(limits, true);
    expect(large.failure(101, noState)?.reason).toBe("answer_too_large");
  });

  it("bound entries that are only shown to twice the answer's bytes", () => {
    const shown = (length: number): CompletionEvent => ({
      type: "shown",
      name: "annotations",
      entries: ["x".repeat(length - 2)],
    });
    expect(taken([shown(60), shown(60)])).toEqual([null, 2]);
    expect(taken([shown(60), shown(60), shown(100)])).toEqual(["answer_too_large", 2]);
    expect(taken([{ type: "shown", name: "images", entries: [nested(100)] }])).toEqual([
      "too_deep",
      0,
    ]);
  });
});

describe("halves of surrogate pairs in one answer", () => {
  const [high, low] = ["\ud83d", "\ude00"];
  const text = (of: string): CompletionEvent => ({ type: "text-delta", text: of });
  const args = (index: number, of: string): CompletionEvent => ({
    type: "tool-call-delta",
    index,
    arguments: of,
  });
  const finish: CompletionEvent = { type: "finish", reason: "stop" };

  function all(...events: readonly CompletionEvent[]): readonly CompletionEvent[] {
    const intake = new AnswerIntake(defaultLimits, true);
    return events.flatMap((event) => intake.take([event]));
  }

  it("are joined within a part, and replaced at its end", () => {
    expect(all(text(`a${high}`), text(`${low}b`), finish)).toEqual([
      text("a"),
      text(`${high}${low}b`),
      finish,
    ]);
    const reasoning: CompletionEvent = { type: "reasoning-delta", text: "r" };
    expect(all(text(high), reasoning, text(low), text("\udbff"), finish)).toEqual([
      text("\ufffd"),
      reasoning,
      text("\ufffd"),
      text("\ufffd"),
      finish,
    ]);
    expect(all(text("\ud800"), text(""), text("\udc00"))).toEqual([text("\ud800\udc00")]);
    const call: CompletionEvent = { type: "tool-call-started", index: 0, id: high, name: low };
    expect(all(text(high), call)).toEqual([
      text("\ufffd"),
      { ...call, id: "\ufffd", name: "\ufffd" },
    ]);
  });

  const started = (index: number): CompletionEvent => ({
    type: "tool-call-started",
    index,
    id: "call",
    name: "f",
  });

  it("are joined per tool call", () => {
    const calls = [started(0), started(1)];
    const events = [args(0, `a${high}`), args(1, high), args(0, `${low}b`), finish];
    expect(all(...calls, ...events)).toEqual([
      ...calls,
      args(0, "a"),
      args(0, `${high}${low}b`),
      args(1, "\ufffd"),
      finish,
    ]);
  });

  /** The arguments as a client joins them, for every cut in two. */
  const joinedAtEveryCut = (text: string): ReadonlySet<string> =>
    new Set(
      Array.from({ length: text.length + 1 }, (_, cut) =>
        all(started(0), args(0, text.slice(0, cut)), args(0, text.slice(cut)), finish)
          .map((event) => (event.type === "tool-call-delta" ? event.arguments : ""))
          .join(""),
      ),
    );

  it.each([
    ['{"a":"\\ud83d\\ude00"}', '{"a":"\\ud83d\\ude00"}'],
    ['{"a":"\\uD83D"}', '{"a":"\\ufffd"}'],
    ['{"a":"\\ude00\\ud83d\\n"}', '{"a":"\\ufffd\\ufffd\\n"}'],
    ['{"a":"\\ud83d\\ud83d\\ude00\\\\"}', '{"a":"\\ufffd\\ud83d\\ude00\\\\"}'],
    ['{"a":"\\\\ud83d \\\\\\ud83d"}', '{"a":"\\\\ud83d \\\\\\ufffd"}'],
    [`{"a":"\\ud83d${high}`, '{"a":"\\ufffd\ufffd'],
    ['{"a":"\\ud83d\\ud', '{"a":"\\ufffd\\ud'],
    ['{"a":"\\ud83d', '{"a":"\\ufffd'],
    ['{"a":"\\ud83', '{"a":"\\ud83'],
    ['{"a":"\\', '{"a":"\\'],
    ["\\ud83z \\u12 \\x", "\\ud83z \\u12 \\x"],
  ])("are replaced where arguments have them as escapes: %s", (text, expected) => {
    expect([...joinedAtEveryCut(text)]).toEqual([expected]);
  });

  it("are replaced in an answer's labels", () => {
    const started: CompletionEvent = { type: "answer-started", providerModel: high };
    expect(all(started)).toEqual([{ ...started, providerModel: "\ufffd" }]);
    const whole: CompletionEvent = { type: "answer-started", providerModel: "m" };
    expect(all(whole)).toEqual([whole]);
  });
});
