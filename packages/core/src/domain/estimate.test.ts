import { expect, it } from "vitest";
import { sizeOfMessages } from "./estimate.ts";
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
