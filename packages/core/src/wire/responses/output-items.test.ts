import { expect, it } from "vitest";
import type { Completion, CompletionPart } from "../../domain/completion.ts";
import type { FinishReason } from "../../domain/completion-event.ts";
import { outputItems } from "./output-items.ts";

const response = "resp_0190a00000007000800000000000000a";
const idOf = (kind: string, index: number) => `${kind}_${response.slice(5)}_o${index}`;
const parts: readonly CompletionPart[] = [
  { type: "reasoning", text: "Hm." },
  { type: "text", text: "I look." },
  { type: "refusal", text: "No." },
  {
    type: "tool-call",
    call: { id: "call_1", type: "function", function: { name: "look", arguments: "{" } },
  },
];
const answer = (finishReason: FinishReason | null): Completion => ({
  parts,
  logprobs: [],
  finishReason,
  usage: {},
});

it("each part of an answer is an output item", () => {
  const status = "completed";
  const message = { type: "message", status, role: "assistant" };
  expect(outputItems(answer("stop"), response)).toEqual([
    {
      id: idOf("rs", 0),
      type: "reasoning",
      status,
      summary: [{ type: "summary_text", text: "Hm." }],
    },
    {
      id: idOf("msg", 1),
      ...message,
      content: [{ type: "output_text", text: "I look.", annotations: [], logprobs: [] }],
    },
    { id: idOf("msg", 2), ...message, content: [{ type: "refusal", refusal: "No." }] },
    {
      id: idOf("fc", 3),
      type: "function_call",
      status,
      call_id: "call_1",
      name: "look",
      arguments: "{",
    },
  ]);
});

it.each(["length", "content_filter", null] as const)(
  "the finish reason %s makes the last item incomplete",
  (reason) => {
    const statuses = outputItems(answer(reason), response).map(({ status }) => status);
    expect(statuses).toEqual(["completed", "completed", "completed", "incomplete"]);
  },
);

it("an empty answer has no items", () => {
  expect(outputItems({ ...answer("length"), parts: [] }, response)).toEqual([]);
});
