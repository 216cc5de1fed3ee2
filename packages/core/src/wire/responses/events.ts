import type { Completion } from "../../domain/completion.ts";
import type { CompletionEvent, FinishReason } from "../../domain/completion-event.ts";
import type { Usage } from "../../domain/usage.ts";
import type { GatewayError } from "../../errors/gateway-error.ts";
import type { WriteEvent } from "./item-writer.ts";
import { lastStatus } from "./output-items.ts";
import { createOutputWriter } from "./output-writer.ts";
import { responseError } from "./response-error.ts";
import { outcomeOf, type ResponseHead, responseBody, responseObject } from "./response-object.ts";

/** Writes one streamed answer as typed Responses events (section 6.2). Read the pieces in order, each once. */
export interface ResponseEventWriter {
  /** `response.created` and `response.in_progress`. Empty when repeated. The other methods call it first. */
  start(): string;
  /** The events that the client sees. */
  write(events: readonly CompletionEvent[]): Iterable<string>;
  /** Closes open items. Then `response.completed` or `response.incomplete`, with the same body as a plain answer. */
  finish(
    completion: Completion,
    usage: Usage,
    finishReason: FinishReason,
    completedAt: number,
  ): Iterable<string>;
  /** Closes open items as incomplete. Then `error` and `response.failed`. */
  fail(error: GatewayError): Iterable<string>;
}

export function createEventWriter(head: ResponseHead): ResponseEventWriter {
  const writeEvent = createSequence();
  const output = createOutputWriter(
    { responseId: head.id, namespaces: head.namespaces },
    writeEvent,
  );
  let isStarted = false;

  function start(): string {
    if (isStarted) return "";
    isStarted = true;
    const response = `"response":${JSON.stringify(responseObject(head, { status: "in_progress" }))}`;
    return writeEvent("response.created", response) + writeEvent("response.in_progress", response);
  }

  return {
    start,
    *write(events) {
      yield start();
      yield* output.write(events);
    },
    *finish(completion, usage, finishReason, completedAt) {
      const { sealedState } = completion;
      yield start();
      yield* output.end((isLast) => (isLast ? lastStatus(finishReason) : "completed"));
      if (sealedState !== undefined) yield output.addState(sealedState);
      const body = responseBody(head, completion, usage, finishReason, completedAt);
      yield writeEvent(`response.${outcomeOf(finishReason)}`, `"response":${body}`);
    },
    *fail(error) {
      yield start();
      yield* output.end(() => "incomplete");
      const failed = responseObject(head, { status: "failed", output: output.items(), error });
      yield writeEvent("error", errorMembers(error));
      yield writeEvent("response.failed", `"response":${JSON.stringify(failed)}`);
    },
  };
}

/** Writes complete events, each with the next number, and with its type as event name and as member. */
function createSequence(): WriteEvent {
  let next = 0;
  return (type, members) =>
    `event: ${type}\ndata: {"type":"${type}","sequence_number":${next++},${members}}\n\n`;
}

/** The error's members both flat and nested, because some clients read only one of the two. */
function errorMembers(error: GatewayError): string {
  const { code, message } = responseError(error);
  const { param, type } = error;
  const nested = { type, code, message, param };
  return JSON.stringify({ code, message, param, error: nested }).slice(1, -1);
}
