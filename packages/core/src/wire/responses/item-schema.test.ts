import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../domain/limits.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { InputItem } from "./items.ts";
import { parseResponse } from "./parse.ts";

const first = { role: "user", content: "Hello" };
const itemOf = (item: unknown): InputItem | undefined =>
  parseResponse({ model: "sim/acme/echo", input: [first, item] }, defaultLimits).input[1];

function refusal(item: unknown): readonly [string, string | null] {
  try {
    itemOf(item);
  } catch (error) {
    if (error instanceof GatewayError && error.status === 400) return [error.code, error.param];
    throw error;
  }
  throw new Error("the item was accepted");
}

const asked = { type: "input_text", text: "Hi" };
const answered = { type: "output_text", text: "Hi", annotations: [], logprobs: [] };
const dataUrl = "data:image/png;base64,aGk=";
const image = { type: "input_image", image_url: dataUrl, detail: "auto" };
const message = (role: string, content: readonly unknown[]) => ({ type: "message", role, content });
const call = { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" };
const output = { type: "function_call_output", call_id: "call_1", output: "A cat." };

const accepted: readonly (readonly [name: string, item: unknown, read: object])[] = [
  ["a user's string", { role: "user", content: "Hi" }, message("user", [asked])],
  ["a type too", message("user", [asked]), message("user", [asked])],
  [
    "null for the type",
    { type: null, role: "user", content: "" },
    message("user", [{ type: "input_text", text: "" }]),
  ],
  ["a system message", { role: "system", content: "Hi" }, message("system", [asked])],
  ["a developer message", { role: "developer", content: [asked] }, message("developer", [asked])],
  ["an assistant's string", { role: "assistant", content: "Hi" }, message("assistant", [answered])],
  [
    "an assistant message of an answer",
    { ...message("assistant", [answered]), id: "msg_1", status: "completed", phase: null },
    message("assistant", [answered]),
  ],
  [
    "a parsed answer",
    message("assistant", [{ ...answered, parsed: { a: 1 } }]),
    message("assistant", [answered]),
  ],
  ["an answer without parts", message("assistant", []), message("assistant", [])],
  [
    "a refusal",
    message("assistant", [{ type: "refusal", refusal: "No." }]),
    message("assistant", [{ type: "refusal", refusal: "No." }]),
  ],
  [
    "text under the other role's name",
    message("assistant", [asked]),
    message("assistant", [answered]),
  ],
  ["the other way round", message("user", [answered]), message("user", [asked])],
  [
    "an image without detail",
    message("user", [asked, { type: "input_image", image_url: dataUrl }]),
    message("user", [asked, image]),
  ],
  [
    "an image by URL",
    message("user", [
      { ...image, image_url: "https://example.com/a.png", detail: "high", file_id: null },
    ]),
    message("user", [{ ...image, image_url: "https://example.com/a.png", detail: "high" }]),
  ],
  ["a call", { ...call, id: "fc_1", status: "completed" }, call],
  ["a call from a group", { ...call, namespace: "crm" }, { ...call, namespace: "crm" }],
  ["its output", { ...output, namespace: "crm" }, output],
  ["a parsed call", { ...call, parsed_arguments: {} }, call],
  ["an output", { ...output, id: null, status: null, name: "look" }, output],
  [
    "reasoning",
    {
      type: "reasoning",
      id: "rs_1",
      summary: [{ type: "summary_text", text: "Hm." }],
      content: null,
      encrypted_content: null,
    },
    { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] },
  ],
  [
    "reasoning that is sealed",
    { type: "reasoning", id: "rs_1", summary: [], content: [{}], encrypted_content: "x" },
    { type: "reasoning", summary: [], content: [{}], encrypted_content: "x" },
  ],
  ["an item with every optional member", { ...call, async_: null }, call],
  [
    "breakpoints of a cache",
    message("user", [{ ...asked, prompt_cache_breakpoint: { mode: "explicit" } }]),
    message("user", [{ ...asked, prompt_cache_breakpoint: { mode: "explicit" } }]),
  ],
  [
    "provider state of an answer",
    { ...message("assistant", [answered]), reasoning_details: [{}], thinking_blocks: [{}] },
    { ...message("assistant", [answered]), reasoning_details: [{}], thinking_blocks: [{}] },
  ],
  [
    "provider state of a call",
    { ...call, extra_content: { google: {} } },
    { ...call, extra_content: { google: {} } },
  ],
  ["a reference", { type: "item_reference", id: "msg_1" }, { type: "item_reference", id: "msg_1" }],
  ["a bare id", { id: "msg_1" }, { type: "item_reference", id: "msg_1" }],
];

describe("an input item of section 2.6", () => {
  it.each(accepted)("is accepted: %s", (_name, item, read) => {
    expect(itemOf(item)).toEqual(read);
  });
});

const user = (part: unknown) => message("user", [asked, part]);

const rejected: readonly (readonly [item: unknown, code: string, param: string])[] = [
  ["Hi", "invalid_type", "input[1]"],
  [null, "invalid_type", "input[1]"],
  [{}, "missing_required_parameter", "input[1].type"],
  [{ content: "Hi" }, "missing_required_parameter", "input[1].type"],
  [{ type: 5 }, "invalid_type", "input[1].type"],
  [{ type: "message" }, "missing_required_parameter", "input[1].role"],
  [{ role: "tool", content: "Hi" }, "unsupported_value", "input[1].role"],
  [{ role: "user" }, "missing_required_parameter", "input[1].content"],
  [{ role: "user", content: null }, "missing_required_parameter", "input[1].content"],
  [{ role: "user", content: 5 }, "invalid_type", "input[1].content"],
  [{ role: "user", content: [] }, "invalid_value", "input[1].content"],
  [{ role: "user", content: "Hi", name: "a" }, "unknown_parameter", "input[1].name"],
  [user("Hi"), "invalid_type", "input[1].content[1]"],
  [user({ text: "Hi" }), "missing_required_parameter", "input[1].content[1].type"],
  [user({ type: "text", text: "Hi" }), "unsupported_value", "input[1].content[1].type"],
  [user({ type: "input_text" }), "missing_required_parameter", "input[1].content[1].text"],
  [user({ ...asked, extra: 1 }), "unknown_parameter", "input[1].content[1].extra"],
  [user({ type: "refusal", refusal: "No." }), "unsupported_value", "input[1].content[1].type"],
  [user({ type: "input_file", file_id: "f" }), "unsupported_value", "input[1].content[1].type"],
  [user({ type: "input_audio", input_audio: {} }), "unsupported_value", "input[1].content[1].type"],
  [user({ type: "input_video" }), "unsupported_value", "input[1].content[1].type"],
  [
    user({ type: "input_image", file_id: "f" }),
    "unsupported_parameter",
    "input[1].content[1].file_id",
  ],
  [user({ type: "input_image" }), "missing_required_parameter", "input[1].content[1].image_url"],
  [
    user({ ...image, image_url: { url: dataUrl } }),
    "invalid_type",
    "input[1].content[1].image_url",
  ],
  [
    user({ ...image, image_url: "file:///etc/passwd" }),
    "invalid_value",
    "input[1].content[1].image_url",
  ],
  [
    user({ ...image, image_url: "data:image/png;base64,!" }),
    "invalid_value",
    "input[1].content[1].image_url",
  ],
  [
    user({ ...image, image_url: "data:text/html;base64,aGk=" }),
    "invalid_value",
    "input[1].content[1].image_url",
  ],
  [user({ ...image, detail: "huge" }), "invalid_value", "input[1].content[1].detail"],
  [message("system", [image]), "unsupported_value", "input[1].content[0].type"],
  [message("assistant", [image]), "unsupported_value", "input[1].content[0].type"],
  [{ ...call, call_id: undefined }, "missing_required_parameter", "input[1].call_id"],
  [{ ...call, name: "" }, "invalid_value", "input[1].name"],
  [{ ...call, arguments: {} }, "invalid_type", "input[1].arguments"],
  [{ ...call, file_url: "x" }, "unsupported_parameter", "input[1].file_url"],
  [{ ...call, extra_content: "x" }, "invalid_type", "input[1].extra_content"],
  [{ ...call, async_: true }, "unknown_parameter", "input[1].async_"],
  [
    message("user", [{ ...asked, cache_control: 1 }]),
    "invalid_type",
    "input[1].content[0].cache_control",
  ],
  [{ ...message("user", [asked]), reasoning: "r" }, "unknown_parameter", "input[1].reasoning"],
  [{ type: "reasoning", summary: [], content: {} }, "invalid_type", "input[1].content"],
  [
    { type: "reasoning", summary: [], encrypted_content: "x".repeat(2_621_441) },
    "invalid_value",
    "input[1]",
  ],
  [{ ...call, namespace: 5 }, "invalid_type", "input[1].namespace"],
  [{ ...output, call_id: null }, "missing_required_parameter", "input[1].call_id"],
  [{ ...output, output: undefined }, "missing_required_parameter", "input[1].output"],
  [{ ...output, output: [asked] }, "invalid_value", "input[1].output"],
  [{ ...output, output: { a: 1 } }, "invalid_type", "input[1].output"],
  [{ type: "reasoning", summary: "Hm." }, "invalid_type", "input[1].summary"],
  [
    { type: "reasoning", summary: [{ type: "text", text: "" }] },
    "invalid_value",
    "input[1].summary[0].type",
  ],
  [{ type: "item_reference" }, "missing_required_parameter", "input[1].id"],
  [{ type: "item_reference", id: "a", role: "user" }, "unknown_parameter", "input[1].role"],
  [{ id: 5 }, "invalid_type", "input[1].id"],
  ...[
    "file_search_call",
    "web_search_call",
    "computer_call",
    "computer_call_output",
    "code_interpreter_call",
    "image_generation_call",
    "local_shell_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "custom_tool_call",
    "compaction",
    "additional_tools",
  ].map((type) => [{ type, id: "x" }, "unsupported_value", "input[1].type"] as const),
];

describe("an invalid input item", () => {
  it.each(rejected)("%j is refused", (item, code, param) => {
    expect(refusal(item)).toEqual([code, param]);
  });
});
