import type { TestGateway } from "@tollgate/testing";
import { z } from "zod";

const usage = z.strictObject({
  input_tokens: z.number(),
  cache_creation_input_tokens: z.number(),
  cache_read_input_tokens: z.number(),
  cache_creation: z.strictObject({
    ephemeral_5m_input_tokens: z.number(),
    ephemeral_1h_input_tokens: z.number(),
  }),
  output_tokens: z.number(),
  output_tokens_details: z.strictObject({ thinking_tokens: z.number() }).nullable(),
  server_tool_use: z.null(),
  service_tier: z.string().nullable(),
  inference_geo: z.null(),
  speed: z.null(),
});

const block = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.string(), citations: z.null() }),
  z.strictObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() }),
  z.strictObject({ type: z.literal("redacted_thinking"), data: z.string() }),
  z.strictObject({
    type: z.literal("tool_use"),
    id: z.string(),
    name: z.string(),
    input: z.record(z.string(), z.unknown()),
    caller: z.strictObject({ type: z.literal("direct") }),
  }),
]);

const stop = {
  stop_reason: z
    .enum(["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"])
    .nullable(),
  stop_sequence: z.string().nullable(),
  stop_details: z
    .strictObject({
      type: z.literal("refusal"),
      category: z.string().nullable(),
      explanation: z.string().nullable(),
    })
    .nullable(),
  container: z.null(),
};

const message = z.strictObject({
  id: z.string().startsWith("msg_"),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string(),
  content: z.array(block),
  ...stop,
  diagnostics: z.null(),
  usage,
  session_id: z.uuid(),
  turn_id: z.uuid(),
});

const failure = z.strictObject({
  type: z.literal("error"),
  error: z.strictObject({ type: z.string(), message: z.string().min(1) }),
  request_id: z.uuid(),
});

const delta = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text_delta"), text: z.string() }),
  z.strictObject({ type: z.literal("thinking_delta"), thinking: z.string() }),
  z.strictObject({ type: z.literal("signature_delta"), signature: z.string() }),
  z.strictObject({ type: z.literal("input_json_delta"), partial_json: z.string() }),
]);

const event = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("message_start"), message }),
  z.strictObject({
    type: z.literal("content_block_start"),
    index: z.number(),
    content_block: block,
  }),
  z.strictObject({ type: z.literal("content_block_delta"), index: z.number(), delta }),
  z.strictObject({ type: z.literal("content_block_stop"), index: z.number() }),
  z.strictObject({ type: z.literal("message_delta"), delta: z.strictObject(stop), usage }),
  z.strictObject({ type: z.literal("message_stop") }),
  z.strictObject({ type: z.literal("ping") }),
  failure,
]);

/** A message, with no member that the Messages API doesn't have except the ids of its Session and Turn. */
export type MessageObject = z.infer<typeof message>;
export type MessageEvent = z.infer<typeof event>;
export type MessageFailure = z.infer<typeof failure>;

type Fields = Readonly<Record<string, unknown>>;
type Headers = Readonly<Record<string, string>>;

/** Reads an error of the Messages API. */
export async function failureIn(answer: Response | Promise<Response>): Promise<MessageFailure> {
  return failure.parse(await (await answer).json());
}

/** Requests to `POST /v1/messages` with one API key. */
export interface MessagesCalls {
  /** May fail. Default: model `test/tollgate/scripted`, 64 tokens at most, the message `Hello`. */
  post(fields?: Fields, headers?: Headers): Promise<Response>;
  /** The same, but it must succeed. */
  create(fields?: Fields, headers?: Headers): Promise<MessageObject>;
  /** The same as a stream: its events in order. */
  stream(fields?: Fields, headers?: Headers): Promise<readonly MessageEvent[]>;
  /** The same, but it must fail with this status. */
  fail(status: number, fields?: Fields, headers?: Headers): Promise<MessageFailure>;
}

export function messagesOf(
  gateway: Pick<TestGateway["gateway"], "fetch">,
  secret: string,
): MessagesCalls {
  const post: MessagesCalls["post"] = (fields = {}, headers = {}) =>
    gateway.fetch("http://in-process/v1/messages?beta=true", {
      method: "POST",
      headers: {
        "x-api-key": secret,
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
        ...headers,
      },
      body: JSON.stringify({
        model: "test/tollgate/scripted",
        max_tokens: 64,
        messages: [{ role: "user", content: "Hello" }],
        ...fields,
      }),
    });
  return {
    post,
    async create(fields, headers) {
      const answer = await post(fields, headers);
      const text = await answer.text();
      if (answer.status !== 200) throw new Error(text);
      return message.parse(JSON.parse(text));
    },
    async stream(fields, headers) {
      const answer = await post({ ...fields, stream: true }, headers);
      return eventsIn(await answer.text());
    },
    async fail(status, fields, headers) {
      const answer = await post(fields, headers);
      const text = await answer.text();
      if (answer.status !== status) throw new Error(`${answer.status}: ${text}`);
      return failure.parse(JSON.parse(text));
    },
  };
}

/** The events of a stream's text. The name of each must be its type. */
export function eventsIn(text: string): readonly MessageEvent[] {
  if (!text.endsWith("\n\n")) throw new Error(`The stream ends inside an event: ${text}`);
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((lines) => {
      const [, name, data = ""] = /^event: (\w+)\ndata: ([^\r\n]*)$/.exec(lines) ?? [];
      const read = event.parse(JSON.parse(data));
      if (read.type !== name) throw new Error(`The event ${name} has the type ${read.type}.`);
      return read;
    });
}

/** Joins the events of a complete stream to its message. Throws if they break the grammar. */
export function joined(events: readonly MessageEvent[]): MessageObject {
  const [first, ...rest] = events.filter(({ type }) => type !== "ping");
  if (first?.type !== "message_start")
    throw new Error("The stream doesn't begin with its message.");
  const content: MessageObject["content"] = [];
  const open = new Map<number, string>();
  let whole: MessageObject = first.message;
  for (const [at, one] of rest.entries()) {
    if (one.type === "content_block_start") {
      if (one.index !== content.length) throw new Error(`Block ${one.index} is out of order.`);
      content.push(one.content_block);
      open.set(one.index, "");
    } else if (one.type === "content_block_delta") {
      const input = open.get(one.index);
      if (input === undefined) throw new Error(`Block ${one.index} isn't open.`);
      const before = content[one.index];
      if (one.delta.type === "input_json_delta")
        open.set(one.index, input + one.delta.partial_json);
      else if (before) content[one.index] = extended(before, one.delta);
    } else if (one.type === "content_block_stop") {
      const input = open.get(one.index);
      if (input === undefined) throw new Error(`Block ${one.index} isn't open.`);
      open.delete(one.index);
      const before = content[one.index];
      if (before?.type === "tool_use" && input !== "")
        content[one.index] = { ...before, input: JSON.parse(input) };
    } else if (one.type === "message_delta") {
      if (open.size > 0) throw new Error("A block is still open at the end.");
      whole = { ...whole, ...one.delta, usage: one.usage, content };
    } else if (one.type !== "message_stop" || at !== rest.length - 1)
      throw new Error(`Unexpected ${one.type}.`);
  }
  if (rest.at(-1)?.type !== "message_stop") throw new Error("The stream has no end.");
  return whole;
}

type Block = MessageObject["content"][number];
type Delta = z.infer<typeof delta>;

function extended(before: Block, piece: Delta): Block {
  if (before.type === "text" && piece.type === "text_delta")
    return { ...before, text: before.text + piece.text };
  if (before.type === "thinking" && piece.type === "thinking_delta")
    return { ...before, thinking: before.thinking + piece.thinking };
  if (before.type === "thinking" && piece.type === "signature_delta")
    return { ...before, signature: before.signature + piece.signature };
  throw new Error(`A ${before.type} block got a ${piece.type}.`);
}
