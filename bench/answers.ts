import { eventsPerStream, marker, textEvents } from "./scenarios.ts";

const created = 1_760_000_000;
const usage = { prompt_tokens: 260, completion_tokens: 190, total_tokens: 450 };

/** The text of every plain answer. */
export const plainContent = `${marker} and all the king's men `.repeat(14);

export const toolCallId = "call_bench";

/** A plain answer of about 1 KB. */
export function plainAnswer(): Buffer {
  return completion({ role: "assistant", content: plainContent }, "stop");
}

/** A plain answer that calls a tool. */
export function toolCallAnswer(): Buffer {
  const called = { name: "look_up", arguments: '{"egg":"Humpty Dumpty"}' };
  const calls = [{ id: toolCallId, type: "function", function: called }];
  return completion({ role: "assistant", content: null, tool_calls: calls }, "tool_calls");
}

/** A failure that a client may retry. */
export function unavailableAnswer(): Buffer {
  const error = { message: "The engine is overloaded.", type: "server_error", code: null };
  return answerOf("503 Service Unavailable", { error });
}

function completion(message: object, finish: string): Buffer {
  return answerOf("200 OK", {
    id: "chatcmpl-bench",
    object: "chat.completion",
    created,
    model: "openai/plain",
    choices: [{ index: 0, message, finish_reason: finish }],
    usage,
  });
}

function answerOf(status: string, content: object): Buffer {
  const body = JSON.stringify(content);
  return Buffer.from(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

/** The events of a streamed answer, each as one chunk of the transfer encoding. */
export function streamedAnswer(): readonly Buffer[] {
  const texts = Array.from({ length: textEvents }, () => event({ content: ` ${marker}` }));
  const events = [
    event({ role: "assistant", content: "" }),
    ...texts,
    event({}, "stop"),
    chunk({ choices: [], usage }),
    "data: [DONE]\n\n",
  ];
  if (events.length !== eventsPerStream)
    throw new Error(`Expected ${eventsPerStream} events, not ${events.length}.`);
  return events.map((text) => Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`));
}

export const streamHead = Buffer.from(
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
);
export const streamEnd = Buffer.from("0\r\n\r\n");

function event(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
  return chunk({ choices, usage: null });
}

function chunk(fields: object): string {
  const head = { id: "chatcmpl-bench", object: "chat.completion.chunk", created };
  return `data: ${JSON.stringify({ ...head, model: "openai/streamed", ...fields })}\n\n`;
}
