import type { CompletionEvent, FinishReason } from "@tollgate/core/provider";
import type { Part } from "./ask.ts";
import { invalidAnswer } from "./failures.ts";
import { createToolCalls } from "./tool-calls.ts";
import { errorWithin } from "./upstream-error.ts";
import { usageReport } from "./usage-report.ts";

/** Reads the parts of one answer as completion events. */
export interface Answer {
  /** @throws ProviderError for an error among the parts, and for what cannot be presented */
  add(part: Part, into: CompletionEvent[]): void;
  /** Whether the model stopped; nothing that matters comes after that. */
  finished(): boolean;
}

export function createAnswer(): Answer {
  const toolCalls = createToolCalls();
  let started = false;
  let written = false;
  let finished = false;

  const start = (into: CompletionEvent[], { id, modelId }: Metadata = {}): void => {
    if (started) return;
    started = true;
    into.push({
      type: "answer-started",
      ...label("providerRequestId", id),
      ...label("providerModel", modelId),
    });
  };
  const say = (
    type: "text-delta" | "reasoning-delta",
    text: string,
    into: CompletionEvent[],
  ): void => {
    start(into);
    written = true;
    if (text !== "") into.push({ type, text });
  };

  return {
    add(part, into) {
      switch (part.type) {
        case "response-metadata":
          return start(into, part);
        case "text-delta":
        case "reasoning-delta":
          return say(part.type, part.delta, into);
        case "tool-input-start":
        case "tool-input-delta":
        case "tool-call":
          start(into);
          written = true;
          return toolCalls.add(part, into);
        case "file":
        case "reasoning-file":
          throw invalidAnswer("unsupported_content", "The provider answered with a file.");
        case "error":
          throw errorWithin(part.error, written);
        case "finish": {
          start(into);
          const usage = usageReport(part.usage);
          if (usage) into.push({ type: "usage", usage });
          into.push({ type: "finish", reason: reasonOf(part.finishReason) });
          finished = true;
        }
      }
    },
    finished: () => finished,
  };
}

interface Metadata {
  readonly id?: string;
  readonly modelId?: string;
}

function label(name: "providerRequestId" | "providerModel", value: string | undefined): object {
  return value === undefined || value === "" || value.length > 255 ? {} : { [name]: value };
}

const reasons: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", "stop"],
  ["length", "length"],
  ["tool-calls", "tool_calls"],
  ["content-filter", "content_filter"],
]);

/** An end without a reason is a cut, and an unknown reason is not taken for a good end. */
function reasonOf({ unified, raw }: Extract<Part, { type: "finish" }>["finishReason"]) {
  const reason = reasons.get(unified);
  if (reason) return reason;
  if (unified === "error") throw errorWithin(null, true);
  if (unified === "interrupted" || raw === undefined)
    throw invalidAnswer("answer_cut", "The provider's answer ended before it was complete.");
  throw invalidAnswer(
    "unknown_finish_reason",
    "The provider ended for a reason that is not known.",
  );
}
