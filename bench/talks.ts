/** The conversations of the load generator: each worker has a talk, which makes its next request from earlier answers. */
import { plainContent, toolCallId } from "./answers.ts";
import type { Endpoint, Workload } from "./load-order.ts";
import { marker, textEvents } from "./scenarios.ts";

/** One request. */
export interface Turn {
  readonly endpoint: Endpoint;
  readonly body: Buffer;
  /** Whether it is the first request of a long conversation. */
  readonly opens: boolean;
}

export interface Talk {
  next(): Turn;
  /** Takes the answer to the last turn. Returns its problem, or null for a correct answer. */
  hear(answer: Buffer): string | null;
}

const needle = Buffer.from(marker);
const instructions = "You answer in brief, and only this question. ".repeat(20);
const sentence = "All the king's horses and all the king's men could not put it together again. ";
/** 66 bytes of text in four scripts. */
const nonAscii = "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία, 世界 🌍 и ещё. ";
const turnsOfLong = 50;
const turnsOfResponses = 5;

export function createTalk(workload: Workload, name: string): Talk {
  if (workload.kind === "growing") return growing(workload.messages, name);
  if (workload.kind === "long") return long(workload, name);
  if (workload.kind === "tools") return tools(name);
  if (workload.kind === "responses") return responses(name);
  return single(workload, name);
}

/** The number makes every conversation different. */
function single(workload: Extract<Workload, { kind: "single" }>, name: string): Talk {
  const { model, nonAsciiBytes } = workload;
  const system =
    nonAsciiBytes === undefined
      ? instructions
      : nonAscii.repeat(Math.ceil(nonAsciiBytes / Buffer.byteLength(nonAscii)));
  const isStreamed = model === "burst" || model === "paced" || model === "slow";
  let requests = 0;
  return {
    next() {
      requests += 1;
      const messages = [
        { role: "system", content: system },
        { role: "user", content: `Question ${name}-${requests}?` },
      ];
      const streamed = isStreamed && { stream: true, stream_options: { include_usage: true } };
      return turn({ model: `bench/openai/${model}`, messages, ...streamed });
    },
    hear: isStreamed ? problemOfStream : problemOfPlain,
  };
}

function growing(maxMessages: number, name: string): Talk {
  let conversation = 0;
  let messages: object[] = [];
  const session = createSession();
  return {
    next() {
      if (messages.length >= maxMessages) messages = [];
      if (messages.length === 0) {
        conversation += 1;
        session.begin();
      }
      const content = `${name}-${conversation}, ${messages.length}: ${sentence.repeat(2)}`;
      messages.push({ role: "user", content });
      return turn({ model: "bench/openai/plain", messages });
    },
    hear(answer) {
      messages.push({ role: "assistant", content: plainContent });
      return problemOfPlain(answer) ?? session.problemOf(answer);
    },
  };
}

/** Keeps the history as text, so a body of any length only needs a new end. */
function long(workload: Extract<Workload, { kind: "long" }>, name: string): Talk {
  const { messages, endpoint, respelled } = workload;
  const isChat = endpoint === "chat/completions";
  let [conversation, turns] = [0, turnsOfLong];
  let history = "";
  const session = createSession();
  return {
    next() {
      if (turns === turnsOfLong) {
        session.begin();
        [conversation, turns] = [conversation + 1, 0];
        history = historyOf(messages - 1, `${name}-${conversation}`);
      }
      history += `,${JSON.stringify({ role: "user", content: `${name}, turn ${turns}?` })}`;
      turns += 1;
      const space = respelled ? " ".repeat(turns) : "";
      const list = `[${space}${history}]`;
      const body = isChat ? `"messages":${list}` : `"store":false,"input":${list}`;
      return {
        endpoint,
        body: Buffer.from(`{"model":"bench/openai/plain",${body}}`),
        opens: turns === 1,
      };
    },
    hear(answer) {
      history += `,${JSON.stringify({ role: "assistant", content: plainContent })}`;
      return problemOfPlain(answer) ?? session.problemOf(answer);
    },
  };
}

function historyOf(messages: number, name: string): string {
  return Array.from({ length: messages }, (_, at) => {
    const role = at % 2 === 0 ? "user" : "assistant";
    return JSON.stringify({ role, content: `${name}, ${at}: ${sentence.repeat(2)}` });
  }).join(",");
}

function tools(name: string): Talk {
  const tool = {
    type: "function",
    function: {
      name: "look_up",
      description: "Looks up what became of an egg.",
      parameters: { type: "object", properties: { egg: { type: "string" } }, required: ["egg"] },
    },
  };
  let loops = 0;
  let messages: object[] = [];
  const session = createSession();
  return {
    next() {
      if (messages.length === 0) {
        loops += 1;
        session.begin();
        const content = `${name}-${loops}: ${sentence}`;
        messages = [
          { role: "system", content: instructions },
          { role: "user", content },
        ];
      }
      return turn({ model: "bench/openai/tools", messages, tools: [tool] });
    },
    hear(answer) {
      const asked = messages.length === 2;
      const other = asked ? problemOfToolCall(answer) : problemOfPlain(answer);
      const result = { role: "tool", tool_call_id: toolCallId, content: sentence.repeat(4) };
      if (asked && other === null) messages.push(messageOf(answer), result);
      else messages = [];
      return other ?? session.problemOf(answer);
    },
  };
}

function responses(name: string): Talk {
  let [conversation, turns] = [0, 0];
  let before: string | null = null;
  const session = createSession();
  return {
    next() {
      if (turns === turnsOfResponses) [turns, before] = [0, null];
      if (turns === 0) {
        conversation += 1;
        session.begin();
      }
      turns += 1;
      const input = `${name}-${conversation}, ${turns}: ${sentence.repeat(4)}`;
      const named = before === null ? {} : { previous_response_id: before };
      const body = JSON.stringify({ model: "bench/openai/plain", input, ...named });
      return { endpoint: "responses", body: Buffer.from(body), opens: false };
    },
    hear(answer) {
      const { id }: { readonly id: string } = JSON.parse(answer.toString());
      before = id;
      return problemOfPlain(answer) ?? session.problemOf(answer);
    },
  };
}

/** The Session of an answer; the bare proxy has none. */
function createSession() {
  let known: string | undefined;
  return {
    begin(): void {
      known = undefined;
    },
    problemOf(answer: Buffer): string | null {
      const [, found] = /"session_id":"([^"]+)"/.exec(answer.toString()) ?? [];
      const isAnother = known !== undefined && found !== known;
      known = found;
      return isAnother ? "another Session" : null;
    },
  };
}

function turn(body: object): Turn {
  return { endpoint: "chat/completions", body: Buffer.from(JSON.stringify(body)), opens: false };
}

function problemOfPlain(body: Buffer): string | null {
  return body.includes(needle) ? null : "not the answer";
}

function problemOfToolCall(body: Buffer): string | null {
  return body.includes('"tool_calls"') ? null : "not the tool call";
}

function problemOfStream(body: Buffer): string | null {
  if (!body.includes("data: [DONE]\n\n")) return "stream without its end";
  let texts = 0;
  for (let at = body.indexOf(needle); at >= 0; at = body.indexOf(needle, at + 1)) texts += 1;
  return texts === textEvents ? null : `${texts} texts instead of ${textEvents}`;
}

/** Doesn't check the answer: the upstream is part of this bench. */
function messageOf(answer: Buffer): object {
  const { choices }: { readonly choices: readonly { readonly message: object }[] } = JSON.parse(
    answer.toString(),
  );
  return choices[0]?.message ?? {};
}
