import fc from "fast-check";
import { expect, it } from "vitest";
import { transcriptPart } from "../src/index.ts";

const arrayOf = (messages: readonly string[]): string => `[${messages.join(",")}]`;

/** The content of a part with these messages up to a position. */
function contentOf(messages: readonly string[], end: number): string {
  const content = Buffer.from(arrayOf(messages));
  const part = { stepId: "step", kind: "request", position: 0, count: messages.length } as const;
  return Buffer.from(transcriptPart({ ...part, content }, end).content ?? []).toString();
}

it("returns the first messages of a part byte for byte", () => {
  fc.assert(
    fc.property(fc.array(fc.json()), fc.nat(12), (messages, end) => {
      expect(contentOf(messages, end)).toBe(arrayOf(messages.slice(0, end)));
    }),
  );
});

it("is not misled by quotes, escapes and brackets inside strings", () => {
  const messages = ['{"content":"a\\"],[\\\\"}', '{"content":"}"}', '{"content":"last"}'];
  expect(contentOf(messages, 2)).toBe(arrayOf(messages.slice(0, 2)));
});
