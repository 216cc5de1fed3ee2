import { expect, it } from "vitest";
import { estimateInput, sizeOfMessages } from "./estimate.ts";
import type { Message } from "./message.ts";

it("counts the ids of tool calls, which a client may make as long as texts", () => {
  const conversation = (id: string): readonly Message[] => [
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id, type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: id, content: "a" },
  ];
  const bytes = (id: string): number => sizeOfMessages(conversation(id)).bytes;
  expect(bytes("ü".repeat(1_000)) - bytes("")).toBe(2 * 2_000);
});

it("counts the instructions that Claude adds for tools, which take up to 804 tokens", () => {
  const tools = [{ name: "f" }];
  const size = { bytes: 0, images: 0 };
  const estimate = (given: typeof tools): number =>
    estimateInput({ messages: [], tools: given }, size, 0);
  expect(estimate(tools) - JSON.stringify(tools).length / 3).toBeGreaterThanOrEqual(804);
  expect(estimate([])).toBe(0);
});

it("counts them for a schema, too, which older models of Claude get as a tool", () => {
  const responseFormat = { type: "json_schema", name: "answer" } as const;
  const size = { bytes: 0, images: 0 };
  const estimate = estimateInput({ messages: [], responseFormat }, size, 0);
  expect(estimate - JSON.stringify(responseFormat).length / 3).toBeGreaterThanOrEqual(804);
});
