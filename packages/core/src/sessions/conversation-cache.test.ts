import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Message } from "../domain/message.ts";
import { type CachedConversation, createConversationCache } from "./conversation-cache.ts";
import { chainOf } from "./transcript-chain.ts";

const salt = Buffer.alloc(32, 1);
const chain = await chainOf([], salt);
const conversation: Omit<CachedConversation<string>, "values"> = {
  items: [],
  messages: [],
  chain,
  sent: null,
  droppedFields: {},
};

/** A body of about 10 KB whose first two items nobody else's begins with. */
function bodyOf(name: string, more: readonly string[] = []): Buffer {
  return Buffer.from(JSON.stringify({ items: [name, "x".repeat(10_000), ...more] }));
}

function create(maxBytes: number) {
  const known = createConversationCache<string>("items", maxBytes);
  return {
    remember: (name: string, more?: readonly string[]) =>
      known.listOf("key", bodyOf(name, more))?.remember(conversation),
    knows: (name: string) => known.listOf("key", bodyOf(name, ["more"]))?.continued !== null,
  };
}

describe("known conversations", () => {
  it("drop the least recently used when the memory is full", () => {
    const { remember, knows } = create(100_000);
    for (const name of ["a", "b"]) remember(name);
    remember("a", ["more"]);
    remember("c");
    expect(["a", "b", "c"].map(knows)).toEqual([true, false, true]);
  });

  it("keep a growing conversation once", () => {
    const { remember, knows } = create(100_000);
    const more = Array.from({ length: 50 }, (_, at) => String(at));
    remember("b");
    for (const [at] of more.entries()) remember("a", more.slice(0, at));
    expect(knows("b")).toBe(true);
  });

  it("keep only the latest of those with the same beginning", () => {
    const known = createConversationCache<string>("items", 10_000_000);
    const bodies = Array.from({ length: 20 }, (_, at) => bodyOf("a", [String(at), "more"]));
    for (const body of bodies) known.listOf("key", body)?.remember(conversation);
    const found = bodies.map((body) => known.listOf("key", body)?.continued !== null);
    expect(found).toEqual(bodies.map((_, at) => at >= 4));
  });

  it("are not looked up for a small body, or one without a list of several items", () => {
    const { listOf } = createConversationCache<string>("items", 10_000_000);
    const filler = "x".repeat(10_000);
    const bodies = [
      { items: ["a", "b"] },
      { messages: ["a", filler] },
      { items: filler },
      { items: [filler] },
      { items: [], filler },
      [filler],
      filler,
    ];
    for (const body of bodies) expect(listOf("key", Buffer.from(JSON.stringify(body)))).toBeNull();
    expect(listOf("key", Buffer.from(`{"items":["a","${filler}`))).not.toBeUndefined();
  });
});

describe("a body that continues a known conversation", () => {
  const filler = "x".repeat(10_000);
  const text = (...items: readonly string[]) =>
    `{"before":[1], "items" : [ ${items.map((item) => JSON.stringify(item)).join(" , ")} ] ,"after":{}}`;

  function continuing(body: string) {
    const known = createConversationCache<string>("items", 10_000_000);
    known.listOf("key", Buffer.from(text("a", filler)))?.remember(conversation);
    return (owner = "key") => known.listOf(owner, Buffer.from(body))?.continued;
  }

  it("is split into the known items and the rest", () => {
    const whole = continuing(text("a", filler))();
    expect(JSON.parse(String(whole?.rest))).toEqual({ before: [1], items: [], after: {} });
    expect(whole?.known).toEqual({ ...conversation, values: whole?.known.values });
    const longer = continuing(text("a", filler, "b", "c"))();
    expect(JSON.parse(String(longer?.rest))).toEqual({ before: [1], items: ["b", "c"], after: {} });
  });

  it("belongs to the same owner and begins with the same items", () => {
    expect(continuing(text("a", filler))("other")).toBeNull();
    for (const body of [
      text("b", filler),
      text("a", filler.replace("x", "y")),
      text("a", `${filler}y`),
      text("a", filler).replace("] ,", ", ] ,"),
    ])
      expect(continuing(body)()).toBeNull();
  });
});

describe("the chain of a known conversation", () => {
  const message = fc.constantFrom<Message>(
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
    { role: "assistant", content: "b", tool_calls: [] },
    { role: "assistant", content: "c" },
  );

  it("continues as if all messages were new", async () => {
    const messages = fc.array(message, { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(messages, fc.nat(8), async (all, count) => {
        const { messages: _, ...known } = await chainOf(all.slice(0, count), salt);
        const { messages: texts, ...found } = await chainOf(all, salt, known);
        const { messages: wholeTexts, ...whole } = await chainOf(all, salt);
        expect(found).toEqual(whole);
        expect(texts).toHaveLength(wholeTexts.length);
        for (let at = 0; at <= texts.length; at++)
          expect(texts.slice(at)).toEqual(wholeTexts.slice(at));
      }),
    );
  });
});
