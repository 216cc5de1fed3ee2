import type { createPublishedSchemas } from "./published-schema.ts";

/** One event of a stream. */
export interface PublishedEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

const schemaOf: Readonly<Record<string, string>> = {
  "response.created": "ResponseCreatedEvent",
  "response.in_progress": "ResponseInProgressEvent",
  "response.output_item.added": "ResponseOutputItemAddedEvent",
  "response.output_item.done": "ResponseOutputItemDoneEvent",
  "response.content_part.added": "ResponseContentPartAddedEvent",
  "response.content_part.done": "ResponseContentPartDoneEvent",
  "response.output_text.delta": "ResponseTextDeltaEvent",
  "response.output_text.done": "ResponseTextDoneEvent",
  "response.output_text.annotation.added": "ResponseOutputTextAnnotationAddedEvent",
  "response.refusal.delta": "ResponseRefusalDeltaEvent",
  "response.refusal.done": "ResponseRefusalDoneEvent",
  "response.reasoning_summary_part.added": "ResponseReasoningSummaryPartAddedEvent",
  "response.reasoning_summary_part.done": "ResponseReasoningSummaryPartDoneEvent",
  "response.reasoning_summary_text.delta": "ResponseReasoningSummaryTextDeltaEvent",
  "response.reasoning_summary_text.done": "ResponseReasoningSummaryTextDoneEvent",
  "response.function_call_arguments.delta": "ResponseFunctionCallArgumentsDeltaEvent",
  "response.function_call_arguments.done": "ResponseFunctionCallArgumentsDoneEvent",
  error: "ResponseErrorEvent",
  "response.completed": "ResponseCompletedEvent",
  "response.incomplete": "ResponseIncompleteEvent",
  "response.failed": "ResponseFailedEvent",
};

/**
 * Lists the problems of an event under the published schema of its type. That usage is null until it is known is how the
 * published API answers, not its schema.
 */
export function createEventProblems(
  problems: ReturnType<typeof createPublishedSchemas>,
): (event: PublishedEvent) => readonly string[] {
  return (event) => {
    const response = event["response"];
    const isWithoutUsage =
      typeof response === "object" &&
      response !== null &&
      "usage" in response &&
      response.usage === null;
    const checked = isWithoutUsage
      ? { ...event, response: { ...response, usage: undefined } }
      : event;
    return problems(schemaOf[event.type] ?? event.type, JSON.parse(JSON.stringify(checked)));
  };
}
