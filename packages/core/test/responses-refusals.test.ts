import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { responsesOf } from "./responses-calls.ts";
import { failureOf } from "./wire.ts";
import { written } from "./written.ts";

type Row = readonly [name: string, fields: Record<string, unknown>, param: string, code: string];

const user = (...content: readonly unknown[]) => ({ input: [{ role: "user", content }] });
const tool = (type: string) => ({ tools: [{ type }] });
const called = { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" };

/** Section 4.6: unsupported features. */
const notEmulated: readonly Row[] = [
  ["a conversation", { conversation: "conv_1" }, "conversation", "unsupported_parameter"],
  ["a new conversation", { conversation: {} }, "conversation", "unsupported_parameter"],
  ["a background response", { background: true }, "background", "unsupported_value"],
  ["compaction", { context_management: [] }, "context_management", "unsupported_parameter"],
  [
    "a hosted file",
    user({ type: "input_file", file_id: "file_1" }),
    "input[0].content[0].type",
    "unsupported_value",
  ],
  [
    "a hosted image",
    user({ type: "input_image", file_id: "file_1" }),
    "input[0].content[0].file_id",
    "unsupported_parameter",
  ],
  ["file search", tool("file_search"), "tools[0].type", "unsupported_value"],
  ["web search", tool("web_search_preview"), "tools[0].type", "unsupported_value"],
  ["computer use", tool("computer_use_preview"), "tools[0].type", "unsupported_value"],
];

/** Other unsupported or invalid requests. */
const wrong: readonly Row[] = [
  ["no input", { input: undefined }, "input", "missing_required_parameter"],
  ["no model", { model: undefined }, "model", "missing_required_parameter"],
  ["an unknown field", { messages: [] }, "messages", "unknown_parameter"],
  ["an unknown option", { text: { style: "x" } }, "text.style", "unknown_parameter"],
  ["a prompt template", { prompt: { id: "p" } }, "prompt", "unsupported_parameter"],
  ["store that is not a boolean", { store: "yes" }, "store", "invalid_type"],
  ["a named Session that is not a UUID", { session_id: "s" }, "session_id", "invalid_value"],
  ["no output tokens", { max_output_tokens: 0 }, "max_output_tokens", "invalid_value"],
  [
    "a tool that was not offered",
    {
      tools: [{ type: "function", name: "listen" }],
      tool_choice: { type: "function", name: "look" },
    },
    "tool_choice.name",
    "invalid_value",
  ],
  [
    "tool output that is not a string",
    { input: [called, { type: "function_call_output", call_id: "call_1", output: [] }] },
    "input[1].output",
    "invalid_value",
  ],
  [
    "an image of another content type",
    user({ type: "input_image", image_url: "data:text/html;base64,aGk=" }),
    "input[0].content[0].image_url",
    "invalid_value",
  ],
  [
    "an image that is not base64",
    user({ type: "input_image", image_url: "data:image/png;base64,%" }),
    "input[0].content[0].image_url",
    "invalid_value",
  ],
  [
    "an item of another kind",
    { input: [{ type: "mcp_call" }] },
    "input[0].type",
    "unsupported_value",
  ],
  ["too many input items", { input: Array(2_001).fill(called) }, "input", "invalid_value"],
];

describe.each([
  ["not emulated (section 4.6)", notEmulated],
  ["wrong (sections 2.5 and 2.6)", wrong],
])("a request that is %s", (_, rows) => {
  it.each(rows)("%s gives a plain 400 that names the field, and leaves nothing", async (...row) => {
    const [, fields, param, code] = row;
    const { gateway, provider, key } = await createTestGateway();
    const responses = responsesOf(gateway, key.secret);
    for (const stream of [false, true]) {
      const answer = await responses.post({ stream, ...fields });
      expect([answer.status, answer.headers.get("content-type")]).toEqual([
        400,
        "application/json",
      ]);
      expect(await failureOf(answer)).toMatchObject({
        type: "invalid_request_error",
        param,
        code,
      });
    }
    expect(provider.calls).toEqual([]);
    expect(await written(gateway)).toEqual({ steps: 0, sessions: 0, decisions: 0 });
  });
});

describe("the other paths of Responses", () => {
  it("support neither cancelling nor compacting (section 4.6)", async () => {
    const { gateway, key } = await createTestGateway();
    const responses = responsesOf(gateway, key.secret);
    const { id } = await responses.create();
    for (const path of [`responses/${id}/cancel`, "responses/compact", "responses/resp_x/cancel"]) {
      const answer = await responses.ask("POST", path, "{}");
      expect(answer.status).toBe(400);
      expect(await failureOf(answer)).toMatchObject({
        type: "invalid_request_error",
        code: "unsupported_parameter",
      });
    }
    expect((await responses.get(id)).status).toBe(200);
  });

  it.each(["?stream=true", "?starting_after=3"])(
    "never repeat a stream: GET with %s",
    async (query) => {
      const { gateway, key } = await createTestGateway();
      const responses = responsesOf(gateway, key.secret);
      const { id } = await responses.create();
      const answer = await responses.get(`${id}${query}`);
      expect(answer.status).toBe(400);
      expect(await failureOf(answer)).toMatchObject({
        code: "unsupported_parameter",
        param: query.slice(1).split("=")[0],
      });
      expect((await responses.get(`${id}?stream=false`)).status).toBe(200);
    },
  );

  it.each([
    ["GET", "responses", "POST"],
    ["PUT", "responses/resp_x", "GET, DELETE"],
    ["POST", "responses/resp_x/input_items", "GET"],
  ])("%s %s gives 405 and names the allowed methods", async (method, path, allow) => {
    const { gateway, key } = await createTestGateway();
    const answer = await responsesOf(gateway, key.secret).ask(method, path);
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, allow]);
  });
});

it("a request that refers to an unknown response leaves nothing", async () => {
  const { gateway, provider, key } = await createTestGateway();
  const responses = responsesOf(gateway, key.secret);
  await responses.post({ previous_response_id: "resp_x" });
  await responses.post({ input: [{ type: "item_reference", id: "msg_x" }] });
  await responses.post({ session_id: "00000000-0000-7000-8000-00000000ffff" });
  expect(provider.calls).toEqual([]);
  expect(await written(gateway)).toEqual({ steps: 0, sessions: 0, decisions: 0 });
});
