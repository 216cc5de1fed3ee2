import { z } from "zod";

const usage = z.strictObject({
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  total_tokens: z.number(),
  prompt_tokens_details: z.strictObject({ cached_tokens: z.number() }).optional(),
  completion_tokens_details: z.strictObject({ reasoning_tokens: z.number() }).optional(),
});

const toolCall = z.strictObject({
  id: z.string(),
  type: z.literal("function"),
  function: z.strictObject({ name: z.string(), arguments: z.string() }),
});

const completion = z.strictObject({
  id: z.string(),
  object: z.literal("chat.completion"),
  created: z.number(),
  model: z.string(),
  system_fingerprint: z.string(),
  choices: z.tuple([
    z.strictObject({
      index: z.literal(0),
      message: z.strictObject({
        role: z.literal("assistant"),
        content: z.string().nullable(),
        refusal: z.string().nullable(),
        reasoning_content: z.string().optional(),
        tool_calls: z.array(toolCall).optional(),
      }),
      logprobs: z.null(),
      finish_reason: z.enum(["stop", "length", "tool_calls", "content_filter"]),
    }),
  ]),
  usage,
  session_id: z.uuid(),
  turn_id: z.uuid(),
});

const toolCallDelta = z.strictObject({
  index: z.number(),
  id: z.string().optional(),
  type: z.literal("function").optional(),
  function: z.strictObject({ name: z.string().optional(), arguments: z.string() }),
});

const chunk = z.strictObject({
  id: z.string(),
  object: z.literal("chat.completion.chunk"),
  created: z.number(),
  model: z.string(),
  system_fingerprint: z.string(),
  choices: z
    .array(
      z.strictObject({
        index: z.literal(0),
        delta: z.strictObject({
          role: z.literal("assistant").optional(),
          content: z.string().optional(),
          refusal: z.string().nullable().optional(),
          reasoning_content: z.string().optional(),
          tool_calls: z.array(toolCallDelta).optional(),
        }),
        logprobs: z.null(),
        finish_reason: z.string().nullable(),
      }),
    )
    .max(1),
  usage: usage.nullable(),
  session_id: z.uuid(),
  turn_id: z.uuid(),
});

const failure = z.strictObject({
  error: z.strictObject({
    message: z.string().min(1),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string(),
  }),
});

/** The body of section 2.2, without other members. */
export type ChatCompletion = z.infer<typeof completion>;
/** A chunk of section 2.3. */
export type Chunk = z.infer<typeof chunk>;
/** The members of an error body. */
export type Failure = z.infer<typeof failure>["error"];

/** Reads a completed plain answer. */
export async function completionOf(answer: Response | Promise<Response>): Promise<ChatCompletion> {
  return completion.parse(await (await answer).json());
}

/** Reads an error answer. */
export async function failureOf(answer: Response | Promise<Response>): Promise<Failure> {
  return failure.parse(await (await answer).json()).error;
}

/** One event or comment of a stream. */
export type Sent =
  | { readonly type: "chunk"; readonly chunk: Chunk }
  | { readonly type: "error"; readonly error: Failure }
  | { readonly type: "ping" | "done" };

/** Reads the text of a stream: events and comments, each ended by an empty line. */
export function sentIn(text: string): readonly Sent[] {
  if (!text.endsWith("\n\n")) throw new Error(`The stream ends inside an event: ${text}`);
  return text.slice(0, -2).split("\n\n").map(sentOf);
}

function sentOf(event: string): Sent {
  if (event === ": ping") return { type: "ping" };
  if (event === "data: [DONE]") return { type: "done" };
  const data: unknown = JSON.parse(/^data: (.*)$/.exec(event)?.[1] ?? "");
  const failed = failure.safeParse(data);
  return failed.success
    ? { type: "error", error: failed.data.error }
    : { type: "chunk", chunk: chunk.parse(data) };
}

/** A streamed answer, read to its end. */
export async function streamed(answer: Response | Promise<Response>): Promise<readonly Sent[]> {
  return sentIn(await (await answer).text());
}

/** The chunks of a stream. */
export function chunksOf(sent: readonly Sent[]): readonly Chunk[] {
  return sent.flatMap((event) => (event.type === "chunk" ? event.chunk : []));
}
