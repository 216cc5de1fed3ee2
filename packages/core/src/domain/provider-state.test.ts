import { describe, expect, it } from "vitest";
import { createStateFold, type StateFields } from "./provider-state.ts";

function folded(...pieces: readonly StateFields[]): StateFields | null {
  const fold = createStateFold();
  for (const piece of pieces) fold.add(piece);
  return fold.fields();
}

const details = (...entries: readonly object[]): StateFields => ({
  reasoning_details: entries.map((entry) => ({ ...entry })),
});

describe("state that arrives in pieces", () => {
  it("is null if no state arrived", () => {
    expect(folded()).toBeNull();
  });

  it("joins the pieces of one thought and its signature, and keeps thoughts apart", () => {
    const text = { type: "reasoning.text", index: 0 };
    expect(
      folded(
        details({ ...text, text: "Two " }),
        details({ ...text, text: "and two.", signature: null }),
        details({ ...text, signature: "s" }),
        details({ type: "reasoning.text", index: 1, text: "Four." }),
        details({ type: "reasoning.encrypted", index: 1, data: "d" }),
      ),
    ).toEqual(
      details(
        { ...text, text: "Two and two.", signature: "s" },
        { type: "reasoning.text", index: 1, text: "Four." },
        { type: "reasoning.encrypted", index: 1, data: "d" },
      ),
    );
  });

  it("keeps entries without an index apart if the one before is signed", () => {
    const signed = { type: "thinking", thinking: "a", signature: "s" };
    expect(folded(details(signed), details(signed))).toEqual(details(signed, signed));
  });

  it("joins the members of objects, and uses the last of any other value", () => {
    expect(
      folded(
        { extra_content: { google: 1 }, other: "a", list: [1] },
        { extra_content: { more: 2 }, other: "b", list: [2] },
      ),
    ).toEqual({ extra_content: { google: 1, more: 2 }, other: "b", list: [1, 2] });
  });
});
