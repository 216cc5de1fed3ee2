import { z } from "zod";
import { signatureOf, thoughtOf, toolResult, turns } from "./script.ts";
import { type LoopUpstream, pieces, Refused, serveUpstream } from "./upstream-server.ts";

const resultText = z
  .union([z.string(), z.array(z.looseObject({ text: z.string() }))])
  .transform((content) =>
    typeof content === "string" ? content : content.map((part) => part.text).join(""),
  );

const block = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text"), text: z.string() }),
  z.looseObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() }),
  z.looseObject({ type: z.literal("redacted_thinking"), data: z.string() }),
  z.looseObject({
    type: z.literal("tool_use"),
    id: z.string(),
    name: z.string(),
    input: z.record(z.string(), z.unknown()),
  }),
  z.looseObject({
    type: z.literal("tool_result"),
    tool_use_id: z.string(),
    content: resultText,
  }),
]);

const message = z.looseObject({
  role: z.enum(["user", "assistant"]),
  content: z
    .union([z.string(), z.array(block)])
    .transform((content) =>
      typeof content === "string" ? [{ type: "text" as const, text: content }] : content,
    ),
});

const messagesRequest = z.looseObject({
  model: z.string(),
  max_tokens: z.int().positive(),
  messages: z.array(message).min(1),
  stream: z.boolean().optional(),
});

type Message = z.output<typeof message>;
type Block = z.output<typeof block>;

/** One block of an answer, with only the keys that the API issues. */
type IssuedBlock =
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "redacted_thinking"; readonly data: string }
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "tool_use";
      readonly id: string;
      readonly name: string;
      readonly input: object;
    };

const refuse = (reason: string) =>
  new Refused(reason, {
    type: "error",
    error: { type: "invalid_request_error", message: reason },
  });

/**
 * Anthropic's Messages API with thinking. The last message with `tool_use` must begin with the thinking blocks exactly as
 * issued, and no thinking block may be changed anywhere. Every call needs its result in the message after it.
 */
export async function startAnthropic(): Promise<LoopUpstream> {
  const issued = new Map<string, readonly IssuedBlock[]>();
  let answers = 0;

  function answer(body: unknown) {
    const { model, messages, stream = false } = messagesRequest.parse(body);
    checkHistory(messages);
    checkThinking(messages, issued);
    const number = ++answers;
    const content = nextAnswer(messages, number);
    const thinking = content.filter(isThinking);
    for (const part of content) if (part.type === "tool_use") issued.set(part.id, thinking);
    const stop_reason = content.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn";
    const head = { id: `msg_${number}`, type: "message", role: "assistant", model };
    if (!stream) return { json: { ...head, content, stop_reason, stop_sequence: null, usage } };
    return { events: streamed(head, content, stop_reason) };
  }

  const server = await serveUpstream("/v1/messages", answer);
  const stateOf = (callId: string) => issued.get(callId)?.map(stateText).find(Boolean);
  return { ...server, stateOf };
}

const stateText = (part: IssuedBlock): string | undefined =>
  part.type === "thinking" ? part.signature : undefined;

const isThinking = ({ type }: IssuedBlock | Block): boolean =>
  type === "thinking" || type === "redacted_thinking";

const isResult = ({ type }: Block) => type === "tool_result";

/** Whether a message is a question: tool results also have the role `user`. */
const isQuestion = ({ role, content }: Message) => role === "user" && !content.some(isResult);

function nextAnswer(messages: readonly Message[], number: number): readonly IssuedBlock[] {
  const turn = turns[messages.filter(isQuestion).length - 1];
  if (turn === undefined) throw refuse("The history asks a question that the script lacks");
  const since = messages.slice(messages.findLastIndex(isQuestion));
  const done = since.filter(({ role }) => role === "assistant").length;
  const thinking = {
    type: "thinking" as const,
    thinking: thoughtOf(number),
    signature: signatureOf(number),
  };
  const step = turn.steps[done];
  if (step === undefined) return [thinking, { type: "text", text: turn.answer }];
  const redacted = { type: "redacted_thinking" as const, data: signatureOf(number + 1_000) };
  return [
    ...(step.calls.length > 1 ? [redacted] : []),
    thinking,
    ...(step.text === "" ? [] : [{ type: "text" as const, text: step.text }]),
    ...step.calls.map(({ name, args }, at) => ({
      type: "tool_use" as const,
      id: `toolu_${number}_${at}`,
      name,
      input: args,
    })),
  ];
}

/** Refuses a history that differs from the script in any question, text, call or result. */
function checkHistory(messages: readonly Message[]): void {
  const expected = turns.flatMap(({ prompt, steps, answer }) => [
    `user ${prompt}`,
    ...steps.flatMap(({ text, calls }) => [
      `assistant ${text} ${JSON.stringify(calls)}`,
      `results ${calls.map(toolResult).join()}`,
    ]),
    `assistant ${answer} []`,
  ]);
  for (const [at, message] of messages.entries()) {
    if (sayingOf(message) !== expected[at])
      throw refuse(`The history has ${sayingOf(message)} instead of ${expected[at]}`);
    const results = messages[at + 1]?.content.flatMap((part) =>
      part.type === "tool_result" ? [part.tool_use_id] : [],
    );
    for (const part of message.content)
      if (part.type === "tool_use" && !results?.includes(part.id))
        throw refuse(`messages.${at}: tool_use ids were found without tool_result blocks`);
  }
}

function sayingOf({ role, content }: Message): string {
  const results = content.flatMap((part) => (part.type === "tool_result" ? [part.content] : []));
  if (results.length > 0) return `results ${results.join()}`;
  const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
  const calls = content.flatMap((part) =>
    part.type === "tool_use" ? [{ name: part.name, args: part.input }] : [],
  );
  return `${role} ${text}${role === "assistant" ? ` ${JSON.stringify(calls)}` : ""}`;
}

function checkThinking(
  messages: readonly Message[],
  issued: ReadonlyMap<string, readonly IssuedBlock[]>,
): void {
  const hasCalls = ({ content }: Message) => content.some(({ type }) => type === "tool_use");
  const last = messages.findLastIndex((message) => isQuestion(message) || hasCalls(message));
  for (const [at, { content }] of messages.entries()) {
    const call = content.find((part) => part.type === "tool_use");
    if (call?.type !== "tool_use") continue;
    const wanted = issued.get(call.id) ?? [];
    const given = content.filter(isThinking);
    if (given.length === 0 && at !== last) continue;
    const lead = content.slice(0, wanted.length).map(withoutMarks);
    if (given.length === 0)
      throw refuse(
        `messages.${at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${content[0]?.type}\``,
      );
    if (JSON.stringify(lead) !== JSON.stringify(wanted) || given.length !== wanted.length)
      throw refuse(`messages.${at}.content.0: thinking blocks cannot be modified`);
  }
}

/** A block with the keys that the API issues, in its order. */
function withoutMarks(part: Block): object {
  if (part.type === "thinking")
    return { type: part.type, thinking: part.thinking, signature: part.signature };
  if (part.type === "redacted_thinking") return { type: part.type, data: part.data };
  return part;
}

const usage = { input_tokens: 40, output_tokens: 30 };

function streamed(
  head: object,
  content: readonly IssuedBlock[],
  stop_reason: string,
): readonly string[] {
  const event = (type: string, fields: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
  const started = { content: [], stop_reason: null, stop_sequence: null };
  return [
    event("message_start", {
      message: { ...head, ...started, usage: { ...usage, output_tokens: 1 } },
    }),
    event("ping", {}),
    ...content.flatMap((part, index) => [
      event("content_block_start", { index, content_block: emptied(part) }),
      ...deltasOf(part).map((delta) => event("content_block_delta", { index, delta })),
      event("content_block_stop", { index }),
    ]),
    event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage }),
    event("message_stop", {}),
  ];
}

function emptied(part: IssuedBlock): object {
  if (part.type === "thinking") return { ...part, thinking: "", signature: "" };
  if (part.type === "text") return { ...part, text: "" };
  return part.type === "tool_use" ? { ...part, input: {} } : part;
}

function deltasOf(part: IssuedBlock): readonly object[] {
  if (part.type === "redacted_thinking") return [];
  if (part.type === "text") return pieces(part.text).map((text) => ({ type: "text_delta", text }));
  if (part.type === "thinking")
    return [
      ...pieces(part.thinking).map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature: part.signature },
    ];
  const written = JSON.stringify(part.input);
  const parts = written === "{}" ? [""] : ["", ...pieces(written)];
  return parts.map((partial_json) => ({ type: "input_json_delta", partial_json }));
}
