import type { CompletionEvent } from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import { createToolCalls } from "./tool-calls.ts";

describe("tool calls in large numbers", () => {
  it("takes time linear in the number of fragments (H7)", () => {
    const count = 4_000;
    const fragments = Array.from({ length: count }, (_, index) => ({
      id: `call_${index}`,
      function: { name: "f", arguments: "{}" },
    }));
    const calls = createToolCalls("seed");
    const events: CompletionEvent[] = [];
    for (let round = 0; round < 100; round++) calls.add(fragments, events);
    calls.finish();
    expect(events.filter(({ type }) => type === "tool-call-started")).toHaveLength(count);
  });

  it("rejects an answer that begins calls without end, even without names", () => {
    const calls = createToolCalls("seed");
    const begin = (index: number): void => calls.add([{ index }], []);
    for (let index = 0; index < 4_096; index++) begin(index);
    begin(0);
    expect(() => begin(4_096)).toThrow("too many tool calls");
  });

  it("rejects an object that is nested too deeply as arguments", () => {
    const nested = (depth: number): object =>
      JSON.parse(`${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`);
    const add = (depth: number): void =>
      createToolCalls("seed").add(
        [
          {
            id: "a",
            function: { name: "f", arguments: JSON.parse(JSON.stringify(nested(depth))) },
          },
        ],
        [],
      );
    expect(() => add(64)).not.toThrow();
    expect(() => add(65)).toThrow("nested too deeply");
  });
});

describe("the fragments of tool calls", () => {
  const of = (name?: string, part?: unknown) => ({
    ...(name === undefined ? {} : { name }),
    ...(part === undefined ? {} : { arguments: part }),
  });

  /** The calls that these lists of fragments make: id, name and arguments. */
  function made(...lists: readonly unknown[]): readonly (readonly string[])[] {
    const calls = createToolCalls("seed");
    const events: CompletionEvent[] = [];
    for (const list of lists) calls.add(JSON.parse(JSON.stringify(list)), events);
    calls.finish();
    const texts = new Map<number, [string, string, string]>();
    for (const event of events) {
      if (event.type === "tool-call-started") texts.set(event.index, [event.id, event.name, ""]);
      const call = event.type === "tool-call-delta" ? texts.get(event.index) : undefined;
      if (call && event.type === "tool-call-delta") call[2] += event.arguments;
    }
    return [...texts.values()];
  }

  it.each<readonly [string, readonly unknown[], readonly (readonly string[])[]]>([
    [
      "by their index",
      [
        [{ index: 0, id: "a", function: of("f", "{") }],
        [{ index: 1, id: "b", function: of("g", "[") }],
        [
          { index: 0, function: of(undefined, "}") },
          { index: 1, function: of(undefined, "]") },
        ],
      ],
      [
        ["a", "f", "{}"],
        ["b", "g", "[]"],
      ],
    ],
    [
      "by their id if their index isn't a position",
      [
        [
          { index: -1, id: "a", function: of("f", "1") },
          { index: 0.5, id: "b", function: of("g", "2") },
        ],
        [{ index: -1, id: "b", function: of(undefined, "3") }],
        [{ index: null, id: "a", function: of(undefined, "4") }],
      ],
      [
        ["a", "f", "14"],
        ["b", "g", "23"],
      ],
    ],
    [
      "by an id that comes later",
      [
        [{ index: 0, function: of("f", "1") }],
        [{ index: 0, id: "a", function: of(undefined, "2") }],
        [{ id: "a", function: of(undefined, "3") }],
      ],
      [["call_58f9082db66a15d660a3f65e", "f", "123"]],
    ],
    [
      "as another call if a named one reuses an index under another id",
      [
        [{ index: 0, id: "a", function: of("f", "1") }],
        [{ index: 0, id: "b", function: of("f", "2") }],
        [{ index: 0, function: of(undefined, "3") }],
      ],
      [
        ["a", "f", "1"],
        ["b", "f", "23"],
      ],
    ],
    [
      "as one call if only its id or its name is repeated",
      [
        [{ index: 0, id: "a", function: of("f", "1") }],
        [{ index: 0, id: "b", function: of(undefined, "2") }],
        [{ index: 0, id: "a", function: of("f", "3") }],
        [{ index: 0, function: of("f", "4") }],
      ],
      [["a", "f", "1234"]],
    ],
    [
      "as other calls if whole ones without ids reuse an index, or have none",
      [
        [{ index: 0, id: "", function: of("f", '{"x":1}') }],
        [{ index: 0, id: "", function: of("f", '{"x":2}') }],
        [{ index: 0, id: "", function: of("g", "{}") }],
        [{ index: 0, id: "", function: of("h", "{}") }],
        // Repeated at its end.
        [{ index: 0, id: "", function: of("h", "{}") }],
        [{ function: of("i", { x: 1 }) }],
        [{ function: of("i", { x: 2 }) }],
      ],
      [
        ["call_58f9082db66a15d660a3f65e", "f", '{"x":1}'],
        [expect.any(String), "f", '{"x":2}'],
        [expect.any(String), "g", "{}"],
        [expect.any(String), "h", "{}"],
        [expect.any(String), "i", '{"x":1}'],
        [expect.any(String), "i", '{"x":2}'],
      ],
    ],
    [
      "as another call if another name without an id reuses an index",
      [
        [{ index: 0, function: of("f", "") }],
        [{ index: 0, function: of(undefined, "{}") }],
        [{ index: 0, function: of("g", "") }],
        [{ index: 0, function: of(undefined, "[]") }],
        [{ index: 0, function: of("h", "") }],
        [{ index: 0, function: of("i", "") }],
      ],
      [
        [expect.any(String), "f", "{}"],
        [expect.any(String), "g", "[]"],
        [expect.any(String), "h", ""],
        [expect.any(String), "i", ""],
      ],
    ],
    [
      "as other calls if one list has equal ones without ids",
      [
        [
          { index: 0, function: of("f", "{}") },
          { index: 0, function: of("f", "{}") },
        ],
        // Repeated at their end.
        [{ index: 0, function: of("f", "{}") }],
      ],
      [
        [expect.any(String), "f", "{}"],
        [expect.any(String), "f", "{}"],
      ],
    ],
    [
      "by their id without an index",
      [
        [{ id: "a", function: of("f", "1") }],
        [{ id: "b", function: of("g", "2") }],
        [{ id: "a", function: of(undefined, "3") }],
      ],
      [
        ["a", "f", "13"],
        ["b", "g", "2"],
      ],
    ],
    [
      "to the last call without an index and an id, until another name begins",
      [
        [{ id: "a", function: of("f", "1") }],
        [{ function: of(undefined, "2") }],
        [{ function: of("f", "3") }],
        [{ id: "b", function: of("g", "4") }],
      ],
      [
        ["a", "f", "123"],
        ["b", "g", "4"],
      ],
    ],
    [
      "by their place in a list of several",
      [
        [
          { id: "a", function: of("f", "1") },
          { id: "b", function: of("g", "2") },
        ],
        [{ function: of(undefined, "3") }, { function: of(undefined, "4") }],
      ],
      [
        ["a", "f", "13"],
        ["b", "g", "24"],
      ],
    ],
    [
      "with arguments that arrive before the name, or as an object, or twice",
      [
        [{ index: 0, id: "a", function: of(undefined, "{") }],
        [{ index: 0, function: of("f", "}") }],
        [{ index: 0, function: of("f", "{}") }],
        [{ index: 1, id: "b", function: of("g", { x: 1 }) }],
        [{ index: 2, id: "c", function: of("h", 5) }],
      ],
      [
        ["a", "f", "{}"],
        ["b", "g", '{"x":1}'],
        ["c", "h", ""],
      ],
    ],
  ])("are joined %s", (_, lists, calls) => {
    expect(made(...lists)).toEqual(calls);
  });

  it("get an id that depends on the answer and their place if they have none", () => {
    const [first, second] = made([
      { index: 0, function: of("f") },
      { index: 1, function: of("g") },
    ]);
    expect(first?.[0]).toMatch(/^call_[0-9a-f]{24}$/);
    expect(second?.[0]).toMatch(/^call_[0-9a-f]{24}$/);
    expect(first?.[0]).not.toBe(second?.[0]);
  });

  it("must be objects with a name in the end", () => {
    expect(() => made(["nothing"])).toThrow("invalid tool call");
    expect(() => made([{ index: 0, id: "a" }])).toThrow("without a name");
    // An index that is none is ignored.
    for (const index of [-1, 0.5, "0", null])
      expect(made([{ index, id: "a", function: of("f", "1") }])).toEqual([["a", "f", "1"]]);
  });
});
