import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { messagePrefix } from "./session.ts";

const arrayOf = (messages: readonly string[]): string => `[${messages.join(",")}]`;

describe("messagePrefix", () => {
  it("returns the first messages byte for byte", () => {
    fc.assert(
      fc.property(fc.array(fc.json()), fc.nat(12), (messages, count) => {
        const prefix = messagePrefix(Buffer.from(arrayOf(messages)), count);
        expect(Buffer.from(prefix).toString()).toBe(arrayOf(messages.slice(0, count)));
      }),
    );
  });

  it("is not misled by quotes, escapes and brackets inside strings", () => {
    const messages = ['{"content":"a\\"],[\\\\"}', '{"content":"}"}', '{"content":"last"}'];
    const prefix = messagePrefix(Buffer.from(arrayOf(messages)), 2);
    expect(Buffer.from(prefix).toString()).toBe(arrayOf(messages.slice(0, 2)));
  });
});
