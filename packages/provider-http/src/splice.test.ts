import type { CompletionEvent } from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import { membersOf } from "./answer-json.ts";
import type { FrameText } from "./dialect.ts";
import { createSplice } from "./splice.ts";

const frameText: FrameText = {
  memberOf: () => "content",
  textIn: (chunk, member) => membersOf(chunk)[member],
};

describe("a splice", () => {
  const frame = (text: string, id = "1"): string =>
    `event: said\ndata: {"id":"${id}","content":"${text}"}\n\n`;
  const says = (text: string): CompletionEvent => ({ type: "text-delta", text });

  it("reads a frame that differs only in its text", () => {
    const splice = createSplice(1_000, frameText);
    expect(splice.read(frame("a"))).toBeNull();
    splice.learn(frame("a"), [says("a")]);
    expect(splice.read(frame("b"))).toEqual(says("b"));
    expect(splice.read(frame('\\n\\u00e9"'.slice(0, -1)))).toEqual(says("\né"));
  });

  it.each([
    ["another id", frame("b", "2")],
    ["no text", frame("")],
    ["text that is not JSON", frame('b" ')],
    ["a text that ends the frame", `${frame("b")}${frame("c")}`],
    ["more than an event may have", frame("b".repeat(300))],
  ])("leaves a frame with %s to the parser", (_, other) => {
    const splice = createSplice(1_000, frameText);
    splice.learn(frame("a"), [says("a")]);
    expect(splice.read(other)).toBeNull();
  });

  it("forgets its template after another frame is parsed", () => {
    const splice = createSplice(1_000, frameText);
    splice.learn(frame("a"), [says("a")]);
    splice.learn(null, []);
    expect(splice.read(frame("b"))).toBeNull();
  });

  it("stops learning from a stream whose frames all differ", () => {
    const splice = createSplice(1_000, frameText);
    for (const id of ["1", "2", "3", "4", "5"]) splice.learn(frame("a", id), [says("a")]);
    expect(splice.read(frame("b", "5"))).toBeNull();
  });
});
