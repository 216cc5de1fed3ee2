import { z } from "zod";

/** One answer of a model, in no wire's words. */
export interface Answer {
  readonly text: string | null;
  readonly calls: readonly {
    readonly id: string;
    readonly name: string;
    readonly input: Readonly<Record<string, unknown>>;
  }[];
}

/** One message of a conversation. */
export type Said =
  | { readonly role: "user"; readonly text: string }
  | { readonly role: "result"; readonly id: string; readonly text: string }
  | { readonly role: "answer"; readonly answer: Answer };

/** How a client of one endpoint speaks. */
interface Wire {
  readonly path: string;
  /** The members of the request that carry the conversation and the tool. */
  bodyOf(said: readonly Said[]): object;
  /** Reads a whole answer. */
  read(body: unknown): Answer;
  /** Joins a stream to the whole answer that it carries. */
  join(stream: string): unknown;
}

const tool = { name: "look", description: "Looks up", parameters: { type: "object" } };
const inputOf = z
  .string()
  .transform((text) => z.record(z.string(), z.unknown()).parse(JSON.parse(text)));

const chatAnswer = z.object({
  choices: z.tuple([
    z.object({
      message: z.object({
        content: z.string().nullable(),
        tool_calls: z
          .array(
            z.object({
              id: z.string(),
              function: z.object({ name: z.string(), arguments: inputOf }),
            }),
          )
          .default([]),
      }),
    }),
  ]),
});
const chatChunk = z.object({
  choices: z.array(
    z.object({
      delta: z.object({
        content: z.string().nullish(),
        tool_calls: z
          .array(
            z.object({
              index: z.number(),
              id: z.string().optional(),
              function: z.object({ name: z.string().optional(), arguments: z.string().optional() }),
            }),
          )
          .default([]),
      }),
    }),
  ),
});

const chat: Wire = {
  path: "chat/completions",
  bodyOf: (said) => ({
    messages: said.map((one) => {
      if (one.role === "user") return { role: "user", content: one.text };
      if (one.role === "result") return { role: "tool", tool_call_id: one.id, content: one.text };
      const { text, calls } = one.answer;
      const tool_calls = calls.map(({ id, name, input }) => ({
        id,
        type: "function",
        function: { name, arguments: JSON.stringify(input) },
      }));
      return { role: "assistant", content: text, ...(calls.length > 0 ? { tool_calls } : {}) };
    }),
    tools: [{ type: "function", function: tool }],
  }),
  read(body) {
    const { content, tool_calls } = chatAnswer.parse(body).choices[0].message;
    return {
      text: content,
      calls: tool_calls.map(({ id, function: { name, arguments: input } }) => ({
        id,
        name,
        input,
      })),
    };
  },
  join(stream) {
    const calls: { id: string; function: { name: string; arguments: string } }[] = [];
    let content: string | null = null;
    for (const data of dataIn(stream).filter((one) => one !== "[DONE]"))
      for (const { delta } of chatChunk.parse(JSON.parse(data)).choices) {
        // Every stream of this API begins with an empty text.
        if (delta.content) content = (content ?? "") + delta.content;
        for (const { index, id, function: piece } of delta.tool_calls) {
          const call = calls[index] ?? { id: id ?? "", function: { name: "", arguments: "" } };
          calls[index] = call;
          call.function.name += piece.name ?? "";
          call.function.arguments += piece.arguments ?? "";
        }
      }
    return { choices: [{ message: { content, tool_calls: calls } }] };
  },
};

const responseAnswer = z.object({
  output: z.array(
    z.discriminatedUnion("type", [
      z.object({ type: z.literal("message"), content: z.tuple([z.object({ text: z.string() })]) }),
      z.object({
        type: z.literal("function_call"),
        call_id: z.string(),
        name: z.string(),
        arguments: inputOf,
      }),
    ]),
  ),
});

const responseEvent = z.object({
  type: z.string(),
  output_index: z.number().optional(),
  item: z.record(z.string(), z.unknown()).optional(),
  delta: z.string().optional(),
});

const responses: Wire = {
  path: "responses",
  bodyOf: (said) => ({
    input: said.flatMap((one): readonly object[] => {
      if (one.role === "user") return [{ role: "user", content: one.text }];
      if (one.role === "result")
        return [{ type: "function_call_output", call_id: one.id, output: one.text }];
      const { text, calls } = one.answer;
      return [
        ...(text === null
          ? []
          : [{ type: "message", role: "assistant", content: [{ type: "output_text", text }] }]),
        ...calls.map(({ id, name, input }) => ({
          type: "function_call",
          call_id: id,
          name,
          arguments: JSON.stringify(input),
        })),
      ];
    }),
    tools: [{ type: "function", ...tool }],
    store: false,
  }),
  read(body) {
    const { output } = responseAnswer.parse(body);
    const texts = output.flatMap((item) => (item.type === "message" ? [item.content[0].text] : []));
    return {
      text: texts[0] ?? null,
      calls: output.flatMap((item) =>
        item.type === "function_call"
          ? [{ id: item.call_id, name: item.name, input: item.arguments }]
          : [],
      ),
    };
  },
  join(stream) {
    const output: Record<string, unknown>[] = [];
    for (const data of dataIn(stream)) {
      const { type, output_index, item, delta = "" } = responseEvent.parse(JSON.parse(data));
      if (type === "response.output_item.added" && item) output.push({ ...item, text: "" });
      const open = output[output_index ?? -1];
      if (open && /^response\.(?:output_text|function_call_arguments)\.delta$/.test(type))
        open["text"] = `${open["text"]}${delta}`;
    }
    return {
      output: output.map((item) =>
        item["type"] === "message"
          ? { ...item, content: [{ text: item["text"] }] }
          : { ...item, arguments: item["text"] },
      ),
    };
  },
};

const block = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({
    type: z.literal("tool_use"),
    id: z.string(),
    name: z.string(),
    input: z.record(z.string(), z.unknown()),
  }),
]);
const messageAnswer = z.object({ content: z.array(block) });
const messageEvent = z.object({
  type: z.string(),
  content_block: z.record(z.string(), z.unknown()).optional(),
  delta: z.object({ text: z.string().optional(), partial_json: z.string().optional() }).optional(),
});

const messages: Wire = {
  path: "messages",
  bodyOf: (said) => ({
    messages: said.reduce<{ role: string; content: object[] }[]>((list, one) => {
      const role = one.role === "answer" ? "assistant" : "user";
      const last = list.at(-1);
      if (last?.role === role) last.content.push(...blocksOf(one));
      else list.push({ role, content: [...blocksOf(one)] });
      return list;
    }, []),
    max_tokens: 500,
    tools: [{ name: tool.name, description: tool.description, input_schema: tool.parameters }],
  }),
  read(body) {
    const { content } = messageAnswer.parse(body);
    const texts = content.flatMap((one) => (one.type === "text" ? [one.text] : []));
    return {
      text: texts[0] ?? null,
      calls: content.flatMap((one) =>
        one.type === "tool_use" ? [{ id: one.id, name: one.name, input: one.input }] : [],
      ),
    };
  },
  join(stream) {
    const content: { block: Readonly<Record<string, unknown>>; text: string; json: string }[] = [];
    for (const data of dataIn(stream)) {
      const { content_block, delta } = messageEvent.parse(JSON.parse(data));
      if (content_block !== undefined) content.push({ block: content_block, text: "", json: "" });
      const last = content.at(-1);
      if (last === undefined) continue;
      last.text += delta?.text ?? "";
      last.json += delta?.partial_json ?? "";
    }
    return {
      content: content.map((one) =>
        one.block["type"] === "text"
          ? { ...one.block, text: one.text }
          : { ...one.block, input: JSON.parse(one.json === "" ? "{}" : one.json) },
      ),
    };
  },
};

function blocksOf(one: Said): readonly object[] {
  if (one.role === "user") return [{ type: "text", text: one.text }];
  if (one.role === "result")
    return [{ type: "tool_result", tool_use_id: one.id, content: one.text }];
  const { text, calls } = one.answer;
  return [
    ...(text === null ? [] : [{ type: "text", text }]),
    ...calls.map((call) => ({ type: "tool_use", ...call })),
  ];
}

/** The data of every event. */
function dataIn(stream: string): readonly string[] {
  return stream.split("\n").flatMap((line) => (line.startsWith("data: ") ? [line.slice(6)] : []));
}

/** The endpoints, by the names that Steps have for them. */
export const wires = { chat_completions: chat, responses, messages };
