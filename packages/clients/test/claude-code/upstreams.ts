import { anthropic } from "@tollgate/provider-anthropic";
import { openaiCompatible } from "@tollgate/provider-openai";
import { messagesUpstream, scriptedUpstream } from "@tollgate/testing";

/** A scripted answer: a text, or a thought and a tool call. */
export type Answer =
  | { readonly text: string }
  | {
      readonly id: string;
      readonly name: string;
      readonly input: Readonly<Record<string, unknown>>;
    };

/** Answers a request from its body's JSON text and its last message of the user or a tool. */
export type Script = (last: string) => Answer;

const thought = "One step at a time.";

/** The usage of every answer of Anthropic's API, and its cost by hand in nano-USD. */
const usage = {
  input_tokens: 10,
  cache_creation_input_tokens: 300,
  cache_read_input_tokens: 1_000,
  output_tokens: 5,
};
const price = {
  input: 3,
  cachedInput: "0.30",
  cacheWrite: { "5m": "3.75", "1h": 6 },
  output: 15,
  maxOutputTokens: 64_000,
} as const;

/** The name that Claude Code asks for. It decides about thinking and betas by that. */
export const model = "claude-sonnet-5";

interface LastMessage {
  readonly role: string;
  readonly content: unknown;
}

function lastOf(body: Readonly<Record<string, unknown>>): string {
  const messages = body["messages"] as readonly LastMessage[];
  const last = messages.findLast(({ role }) => role === "user" || role === "tool");
  return JSON.stringify(last?.content);
}

/** Anthropic's Messages API behind its provider. */
async function anthropicUpstream(script: Script) {
  const upstream = await messagesUpstream(({ body }) => {
    const answer = script(lastOf(body));
    if ("text" in answer) return { content: [{ type: "text", ...answer }], usage };
    const thinking = { type: "thinking", thinking: thought, signature: "c2lnbmVk" };
    return { content: [thinking, { type: "tool_use", ...answer }], usage };
  });
  return {
    provider: anthropic({
      baseURL: upstream.url,
      apiKey: "sk-upstream",
      models: { [`anthropic/${model}`]: price },
    }),
    target: `anthropic/${model}`,
    // 10 x 3,000 + 300 x 3,750 + 1,000 x 300 + 5 x 15,000
    stepCost: 1_530_000,
    close: upstream.close,
  };
}

/** A plain Chat Completions API behind its provider. */
async function chatUpstream(script: Script) {
  const upstream = await scriptedUpstream(async ({ body, send }) => {
    const answer = script(lastOf(JSON.parse(body)));
    const delta =
      "text" in answer
        ? { content: answer.text }
        : {
            reasoning_content: thought,
            tool_calls: [
              {
                index: 0,
                id: answer.id,
                type: "function",
                function: { name: answer.name, arguments: JSON.stringify(answer.input) },
              },
            ],
          };
    const finish_reason = "text" in answer ? "stop" : "tool_calls";
    const chunks = [
      { choices: [{ index: 0, delta: { role: "assistant", ...delta } }] },
      { choices: [{ index: 0, delta: {}, finish_reason }] },
      { choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } },
    ];
    const events = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
    const stream = `${events}data: [DONE]\n\n`;
    const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream";
    await send(`${head}\r\ncontent-length: ${Buffer.byteLength(stream)}\r\n\r\n${stream}`);
  });
  return {
    provider: openaiCompatible({
      baseURL: `${upstream.url}/v1`,
      apiKey: null,
      models: { "openai/mini": { input: 1, output: 2, maxOutputTokens: 64_000 } },
    }),
    target: "openai/mini",
    // 10 x 1,000 + 5 x 2,000
    stepCost: 20_000,
    close: upstream.close,
  };
}

/** The upstreams by name. */
export const upstreams = { anthropic: anthropicUpstream, "chat-completions": chatUpstream };
