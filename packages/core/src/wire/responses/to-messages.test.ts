import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../domain/limits.ts";
import type { Message } from "../../domain/message.ts";
import { storedInput } from "./input-items.ts";
import type { InputItem } from "./items.ts";
import { parseResponse } from "./parse.ts";
import { toMessages } from "./to-messages.ts";

const itemsOf = (input: unknown): readonly InputItem[] =>
  parseResponse({ model: "sim/acme/echo", input, previous_response_id: "resp_1" }, defaultLimits)
    .input;
const messagesOf = (input: unknown): readonly Message[] => toMessages(itemsOf(input));

const said = (content: unknown) => ({ type: "message", role: "assistant", content });
const call = (id: string) => ({
  type: "function_call",
  call_id: id,
  name: "look",
  arguments: "{}",
});
const output = (id: string) => ({ type: "function_call_output", call_id: id, output: "A cat." });
const reasoning = { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] };
const toolCall = (id: string) => ({
  id,
  type: "function",
  function: { name: "look", arguments: "{}" },
});
const toolMessage = (id: string) => ({ role: "tool", tool_call_id: id, content: "A cat." });
const text = (words: string) => ({ type: "text", text: words });
const url = "https://example.com/a.png";

const rows: readonly (readonly [name: string, input: unknown, messages: readonly object[]])[] = [
  ["a string is a user message", "Hello", [{ role: "user", content: "Hello" }]],
  [
    "system and developer messages keep their roles",
    [
      { role: "system", content: "Be brief." },
      { role: "developer", content: [{ type: "input_text", text: "Be kind." }] },
    ],
    [
      { role: "system", content: "Be brief." },
      { role: "developer", content: "Be kind." },
    ],
  ],
  [
    "several texts stay separate parts",
    [{ role: "system", content: ["a", "b"].map((words) => ({ type: "input_text", text: words })) }],
    [{ role: "system", content: [text("a"), text("b")] }],
  ],
  [
    "images become URLs, with the requested detail",
    [
      {
        role: "user",
        content: [
          { type: "input_text", text: "Look" },
          { type: "input_image", image_url: url },
          { type: "input_image", image_url: url, detail: "high" },
        ],
      },
      { role: "user", content: [{ type: "input_image", image_url: url }] },
    ],
    [
      {
        role: "user",
        content: [
          text("Look"),
          { type: "image_url", image_url: { url } },
          { type: "image_url", image_url: { url, detail: "high" } },
        ],
      },
      { role: "user", content: [{ type: "image_url", image_url: { url } }] },
    ],
  ],
  [
    "a refusal stays a refusal",
    [said([{ type: "refusal", refusal: "No." }])],
    [{ role: "assistant", content: [{ type: "refusal", refusal: "No." }] }],
  ],
  ["an empty answer is still an answer", [said([])], [{ role: "assistant", content: "" }]],
  [
    "consecutive answers stay separate messages",
    [said("a"), said("b")],
    [
      { role: "assistant", content: "a" },
      { role: "assistant", content: "b" },
    ],
  ],
  [
    "consecutive calls and the text before them become one message, even with reasoning between",
    [
      reasoning,
      said("I look."),
      reasoning,
      call("1"),
      reasoning,
      call("2"),
      output("1"),
      output("2"),
    ],
    [
      {
        role: "assistant",
        content: "I look.",
        tool_calls: [toolCall("1"), toolCall("2")],
        state: { from: null, fields: { reasoning_items: [reasoning, reasoning, reasoning] } },
      },
      toolMessage("1"),
      toolMessage("2"),
    ],
  ],
  [
    "sealed reasoning stays with the answer that follows it",
    [
      { type: "reasoning", id: "rs_1", status: "completed", summary: [], encrypted_content: "x" },
      said("a"),
      { ...reasoning, encrypted_content: null },
      { role: "user", content: "And?" },
      { type: "reasoning", summary: [] },
      said("b"),
    ],
    [
      {
        role: "assistant",
        content: "a",
        state: {
          from: null,
          fields: {
            reasoning_items: [{ type: "reasoning", summary: [], encrypted_content: "x" }],
          },
        },
      },
      { role: "user", content: "And?" },
      { role: "assistant", content: "b" },
    ],
  ],
  [
    "a sealed item without text belongs to the answer before it",
    [
      call("1"),
      { type: "reasoning", summary: [], encrypted_content: "x" },
      { type: "function_call_output", call_id: "1", output: "2" },
      said("b"),
    ],
    [
      {
        role: "assistant",
        content: null,
        tool_calls: [toolCall("1")],
        state: {
          from: null,
          fields: {
            reasoning_items: [{ type: "reasoning", summary: [], encrypted_content: "x" }],
          },
        },
      },
      { role: "tool", tool_call_id: "1", content: "2" },
      { role: "assistant", content: "b" },
    ],
  ],
  [
    "provider state stays with its message, part or call",
    [
      { role: "user", content: [{ type: "input_text", text: "Hi", cache_control: {} }] },
      { ...said([{ type: "output_text", text: "a" }]), reasoning_content: "r" },
      { ...call("1"), extra_content: {} },
    ],
    [
      {
        role: "user",
        content: [{ ...text("Hi"), state: { from: null, fields: { cache_control: {} } } }],
      },
      {
        role: "assistant",
        content: "a",
        tool_calls: [{ ...toolCall("1"), state: { from: null, fields: { extra_content: {} } } }],
        state: { from: null, fields: { reasoning_content: "r" } },
      },
    ],
  ],
  [
    "calls without text have no content",
    [call("1"), output("1"), call("2"), output("2")],
    [
      { role: "assistant", content: null, tool_calls: [toolCall("1")] },
      toolMessage("1"),
      { role: "assistant", content: null, tool_calls: [toolCall("2")] },
      toolMessage("2"),
    ],
  ],
  [
    "text after a call doesn't separate the call from its output",
    [call("1"), said("I look."), call("2"), output("1"), output("2")],
    [
      { role: "assistant", content: "I look.", tool_calls: [toolCall("1"), toolCall("2")] },
      toolMessage("1"),
      toolMessage("2"),
    ],
  ],
  ["reasoning alone is not a message", [reasoning], []],
];

describe("items as messages", () => {
  it.each(rows)("%s", (_name, input, messages) => {
    expect(messagesOf(input)).toEqual(messages);
  });

  it("are the same once the items are stored", () => {
    for (const [, input] of rows) {
      const items = itemsOf(input);
      expect(toMessages(storedInput(items, "resp_1"))).toEqual(toMessages(items));
    }
  });

  it("are not references", () => {
    expect(() => toMessages([{ type: "item_reference", id: "msg_1" }])).toThrow("reference");
  });

  it("put each call's output after the one message with the calls", () => {
    const turn = fc
      .array(fc.constantFrom("say", "think", "call"), { maxLength: 6 })
      .map((steps) => [
        ...steps.map((step, at) =>
          step === "say" ? said("Well.") : step === "think" ? reasoning : call(String(at)),
        ),
        ...steps.flatMap((step, at) => (step === "call" ? output(String(at)) : [])),
        { role: "user", content: "Go on." },
      ]);
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 3 }), (turns) => {
        let open = new Set<string>();
        for (const message of messagesOf(turns.flat())) {
          if (message.role === "tool") expect(open.delete(message.tool_call_id)).toBe(true);
          else expect(open.size).toBe(0);
          if (message.role === "assistant")
            open = new Set((message.tool_calls ?? []).map(({ id }) => id));
        }
        expect(open.size).toBe(0);
      }),
      { numRuns: 200 },
    );
  });
});

describe("a list as a function's output", () => {
  const shown = { type: "input_image", image_url: url };
  const listed = { ...output("1"), output: [{ type: "input_text", text: "A cat." }, shown] };
  const read = (item: unknown, toolOutputs: "text" | "parts") =>
    parseResponse({ model: "sim/acme/echo", input: [call("1"), item] }, defaultLimits, {
      toolOutputs,
    });

  it("becomes the tool message's content if the gateway accepts lists", () => {
    expect(toMessages(read(listed, "parts").input)[1]).toEqual({
      role: "tool",
      tool_call_id: "1",
      content: [text("A cat."), { type: "image_url", image_url: { url } }],
    });
  });

  it("is refused otherwise, naming the option", () => {
    const fault = { code: "invalid_value", param: "input[1].output" };
    expect(() => read(listed, "text")).toThrow(expect.objectContaining(fault));
    expect(() => read(listed, "text")).toThrow('toolOutputs: "parts"');
  });

  it("can't contain other parts", () => {
    const file = { ...listed, output: [{ type: "input_file", file_id: "f" }] };
    const fault = { code: "unsupported_value", param: "input[1].output[0].type" };
    expect(() => read(file, "parts")).toThrow(expect.objectContaining(fault));
  });
});
