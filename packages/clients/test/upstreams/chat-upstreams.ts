import { z } from "zod";
import { signatureOf, thoughtOf, toolResult, turns } from "./script.ts";
import { type LoopUpstream, pieces, Refused, serveUpstream } from "./upstream-server.ts";

const text = z
  .union([z.string(), z.array(z.looseObject({ text: z.string() })), z.null()])
  .optional()
  .transform((content) =>
    Array.isArray(content) ? content.map((part) => part.text).join("") : (content ?? ""),
  );

const toolCall = z.looseObject({
  id: z.string(),
  function: z.object({ name: z.string(), arguments: z.string() }),
  extra_content: z.unknown().optional(),
});

const message = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: text,
  reasoning_content: z.unknown().optional(),
  tool_calls: z.array(toolCall).optional(),
  tool_call_id: z.string().optional(),
});

const chatRequest = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1),
  stream: z.boolean().optional(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
});

type Message = z.output<typeof message>;
type ToolCall = z.output<typeof toolCall>;

interface AnsweredMessage {
  readonly content?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly AnsweredCall[];
  readonly refusal?: null;
  readonly annotations?: readonly [];
}

interface AnsweredCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
  readonly extra_content?: unknown;
}

/** How one provider issues its state, and which messages must return it. */
interface Dialect {
  /** Adds the state to an answer. */
  issue(answer: AnsweredMessage, number: number): AnsweredMessage;
  /** The state of a call in an answer, or in a returned message. */
  stateOf(of: AnsweredMessage | Message, call: AnsweredCall | ToolCall): unknown;
  /** Whether calls before the last question also need their state. */
  readonly wantsAll: boolean;
  refuse(position: number, name: string): Refused;
}

const missingReasoning =
  "The `reasoning_content` in the thinking mode must be passed back to the API.";

const thinking = (wantsAll: boolean): Dialect => ({
  issue: (answer, number) => ({ ...answer, reasoning_content: thoughtOf(number) }),
  stateOf: ({ reasoning_content }) => reasoning_content,
  wantsAll,
  refuse: (position) =>
    new Refused(`messages[${position}] came back without its reasoning_content`, {
      error: {
        message: missingReasoning,
        type: "invalid_request_error",
        param: null,
        code: "invalid_request_error",
      },
    }),
});

const signatures: Dialect = {
  issue(answer, number) {
    const [first, ...others] = answer.tool_calls ?? [];
    if (first === undefined) return answer;
    const extra_content = { google: { thought_signature: signatureOf(number) } };
    return { ...answer, tool_calls: [{ ...first, extra_content }, ...others] };
  },
  stateOf(_, call) {
    const shape = z.looseObject({ google: z.looseObject({ thought_signature: z.string() }) });
    return shape.safeParse(call.extra_content).data?.google.thought_signature;
  },
  wantsAll: false,
  refuse: (position, name) =>
    new Refused(`messages[${position}] came back without its thought_signature`, [
      {
        error: {
          code: 400,
          message: `Function call is missing a thought_signature in functionCall parts. Function call \`default_api:${name}\`, position ${position}.`,
          status: "INVALID_ARGUMENT",
        },
      },
    ]),
};

const stateless: Dialect = {
  issue: (answer) => ({ ...answer, refusal: null, annotations: [] }),
  stateOf: () => undefined,
  wantsAll: false,
  refuse: () => refuseHistory("was refused for its state"),
};

/** A model without state, with answers in OpenAI's format: only the history itself is compared. */
export const startStateless = () => startChat(stateless);

/** DeepSeek in thinking mode: every message with tool calls must return the `reasoning_content` issued with it. */
export const startDeepseek = () => startChat(thinking(true));

/** Kimi does the same, but only messages after the last question must return `reasoning_content`. */
export const startKimi = () => startChat(thinking(false));

/** Gemini 3: after the last question, the first call of every step must return its `thought_signature`. */
export const startGemini = () => startChat(signatures);

async function startChat(dialect: Dialect): Promise<LoopUpstream> {
  const issued = new Map<string, unknown>();
  let answers = 0;

  function answer(body: unknown) {
    const { model, messages, stream = false, stream_options } = chatRequest.parse(body);
    checkHistory(messages);
    checkState(messages, dialect, issued);
    const number = ++answers;
    const answered = dialect.issue(nextAnswer(messages, number), number);
    for (const call of answered.tool_calls ?? [])
      issued.set(call.id, dialect.stateOf(answered, call));
    const head = {
      id: `chatcmpl-${number}`,
      created: 1_780_000_000,
      model,
      system_fingerprint: "fp_1",
    };
    if (!stream) return { json: completion(head, answered) };
    return { events: streamed(head, answered, stream_options?.include_usage === true) };
  }

  const server = await serveUpstream("/v1/chat/completions", answer);
  const stateOf = (callId: string) => z.string().safeParse(issued.get(callId)).data;
  return { ...server, stateOf };
}

/** The questions so far, and the steps since the last one. */
function positionOf(messages: readonly Message[]) {
  const asked = messages.filter(({ role }) => role === "user").length;
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user"));
  const steps = since.filter(({ tool_calls = [] }) => tool_calls.length > 0).length;
  const turn = turns[asked - 1];
  if (turn === undefined) throw refuseHistory(`asks question ${asked}, which the script lacks`);
  return { turn, steps };
}

function nextAnswer(messages: readonly Message[], number: number): AnsweredMessage {
  const { turn, steps } = positionOf(messages);
  const step = turn.steps[steps];
  if (step === undefined) return { content: turn.answer };
  const tool_calls = step.calls.map(({ name, args }, at) => ({
    id: `call_${number}_${at}`,
    type: "function" as const,
    function: { name, arguments: JSON.stringify(args) },
  }));
  return { ...(step.text === "" ? {} : { content: step.text }), tool_calls };
}

/** Refuses a history that differs from the script in any question, text, call or result. */
function checkHistory(messages: readonly Message[]): void {
  const expected = turns.flatMap(({ prompt, steps, answer }) => [
    `user ${prompt}`,
    ...steps.flatMap(({ text, calls }) => [
      `assistant ${text} ${JSON.stringify(calls)}`,
      ...calls.map((call) => `tool ${toolResult(call)}`),
    ]),
    `assistant ${answer} []`,
  ]);
  const given = messages.filter(({ role }) => role !== "system" && role !== "developer");
  for (const [at, { role, content, tool_calls = [] }] of given.entries()) {
    const calls = tool_calls.map(({ function: { name, arguments: written } }) => ({
      name,
      args: JSON.parse(written === "" ? "{}" : written),
    }));
    const said = `${role} ${content}${role === "assistant" ? ` ${JSON.stringify(calls)}` : ""}`;
    if (said !== expected[at])
      throw refuseHistory(`says ${said} where the script has ${expected[at]}`);
  }
  const called = given.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id));
  const returned = given.flatMap(({ tool_call_id }) => tool_call_id ?? []);
  if (called.join() !== returned.join())
    throw refuseHistory(`calls ${called.join()} but returns ${returned.join()}`);
}

const refuseHistory = (problem: string) =>
  new Refused(`The history ${problem}`, { error: { message: problem, type: "script_error" } });

function checkState(
  messages: readonly Message[],
  dialect: Dialect,
  issued: ReadonlyMap<string, unknown>,
): void {
  const from = dialect.wantsAll ? 0 : messages.findLastIndex(({ role }) => role === "user");
  for (const [position, message] of messages.entries()) {
    if (position < from) continue;
    for (const call of message.tool_calls ?? []) {
      if (!issued.has(call.id)) throw refuseHistory(`calls ${call.id}, which was never issued`);
      const wanted = issued.get(call.id);
      if (wanted !== undefined && dialect.stateOf(message, call) !== wanted)
        throw dialect.refuse(position, call.function.name);
    }
  }
}

const usage = {
  prompt_tokens: 40,
  completion_tokens: 30,
  total_tokens: 70,
  completion_tokens_details: { reasoning_tokens: 20 },
};

const finishOf = ({ tool_calls = [] }: AnsweredMessage) =>
  tool_calls.length > 0 ? "tool_calls" : "stop";

function completion(head: object, answered: AnsweredMessage): unknown {
  const message = { role: "assistant", ...answered };
  const choice = { index: 0, message, finish_reason: finishOf(answered) };
  return { ...head, object: "chat.completion", choices: [choice], usage };
}

function streamed(head: object, answered: AnsweredMessage, withUsage: boolean): readonly string[] {
  const { content = "", reasoning_content = "", tool_calls = [] } = answered;
  const deltas: object[] = [
    { role: "assistant", content: "" },
    ...pieces(reasoning_content).map((piece) => ({ reasoning_content: piece })),
    ...pieces(content).map((piece) => ({ content: piece })),
    ...tool_calls.flatMap((call, index) => callDeltas(call, index)),
  ];
  const choices = [
    ...deltas.map((delta) => ({ index: 0, delta, finish_reason: null })),
    { index: 0, delta: {}, finish_reason: finishOf(answered) },
  ];
  const chunk = (part: object) =>
    `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...part })}\n\n`;
  return [
    ...choices.map((choice) => chunk({ choices: [choice] })),
    ...(withUsage ? [chunk({ choices: [], usage })] : []),
    "data: [DONE]\n\n",
  ];
}

/** Gemini sends a call in one piece; the others send its arguments in several. */
function callDeltas(call: AnsweredCall, index: number): readonly object[] {
  if (call.extra_content !== undefined) return [{ tool_calls: [{ index, ...call }] }];
  const { name, arguments: written } = call.function;
  return [
    { tool_calls: [{ ...call, index, function: { name, arguments: "" } }] },
    ...pieces(written).map((piece) => ({
      tool_calls: [{ index, function: { arguments: piece } }],
    })),
  ];
}
