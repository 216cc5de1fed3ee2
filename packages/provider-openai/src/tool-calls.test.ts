import type { CompletionEvent } from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import { createToolCalls } from "./tool-calls.ts";

describe("tool calls in large numbers", () => {
  it("takes time linear in the number of fragments (H7)", () => {
    const count = 200_000;
    const fragments = Array.from({ length: count }, (_, index) => ({
      id: `call_${index}`,
      function: { name: "f", arguments: "{}" },
    }));
    const calls = createToolCalls("seed");
    const events: CompletionEvent[] = [];
    calls.add(fragments, events);
    calls.add(fragments, events);
    calls.finish();
    expect(events.filter(({ type }) => type === "tool-call-started")).toHaveLength(count);
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
