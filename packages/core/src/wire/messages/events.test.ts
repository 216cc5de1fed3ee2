import { expect, it, onTestFinished, vi } from "vitest";
import type { CompletionEvent } from "../../domain/completion-event.ts";
import { createMessageEventWriter } from "./events.ts";

function writer() {
  return createMessageEventWriter({
    head: { id: "msg_1", model: "sim/test/echo", sessionId: "s", turnId: "t" },
    requestId: "r",
    inputSoFar: () => ({ promptTokens: 1, completionTokens: 0, totalTokens: 1 }),
  });
}

const call = (index: number): CompletionEvent => ({
  type: "tool-call-started",
  index,
  id: `call_${index}`,
  name: "f",
});
const input = (index: number, piece: string): CompletionEvent => ({
  type: "tool-call-delta",
  index,
  arguments: piece,
});
const text = (said: string): CompletionEvent => ({ type: "text-delta", text: said });

/** Where blocks start and stop, by their index: `+0` and `-0`. */
function blocksOf(written: string): readonly string[] {
  return [...written.matchAll(/"type":"content_block_(start|stop)","index":(\d+)/g)].map(
    ([, kind, index]) => `${kind === "start" ? "+" : "-"}${index}`,
  );
}

it("reads the arguments of an open call once, however many blocks begin meanwhile", () => {
  const { write } = writer();
  write([call(0), input(0, `{"list":[${"1,".repeat(1_000_000)}`)]);
  const others = Array.from({ length: 500 }, (_, at) => [
    text("a"),
    { type: "refusal-delta", text: "b" } as const,
    input(0, at % 2 === 0 ? "1," : '"}",'),
  ]).flat();
  const parse = vi.spyOn(JSON, "parse");
  onTestFinished(() => parse.mockRestore());
  for (let at = 0; at < others.length; at += 100) write(others.slice(at, at + 100));
  const read = parse.mock.calls.reduce((sum, [given]) => sum + given.length, 0);
  expect(read).toBeLessThan(2 * 2_100_000);
});

it.each([
  ["whole", ['{"a":"}\\"', '"}'], ["+0", "-0", "+1"]],
  ["cut in a string", ['{"a":"}'], ["+0", "+1"]],
  ["cut after a backslash", ['{"a":"\\', '"}'], ["+0", "+1"]],
  ["cut in a list", ['{"a":[{}'], ["+0", "+1"]],
  ["not JSON", ["{a}"], ["+0", "+1"]],
  ["two values", ["{}", "{}"], ["+0", "+1"]],
  ["empty", [], ["+0", "+1"]],
])(
  "a call whose arguments are %s ends before the next block only if they are",
  (_, pieces, all) => {
    const written = writer().write([
      call(0),
      ...pieces.map((piece) => input(0, piece)),
      text("Now"),
    ]);
    expect(blocksOf(String(written))).toEqual(all);
  },
);
