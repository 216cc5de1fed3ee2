import type { CompletionEvent, FinishReason } from "@tollgate/core/provider";
import { invalidAnswer } from "./failures.ts";
import type { Part } from "./model-call.ts";
import {
  extraContent,
  isSigned,
  joinMetadata,
  type ReasoningBlock,
  reasoningFields,
} from "./provider-state.ts";
import { createToolCalls } from "./tool-calls.ts";
import { errorWithin } from "./upstream-error.ts";
import { usageReport } from "./usage-report.ts";

/** Reads the parts of one answer as completion events. */
export interface AnswerReader {
  /** @throws ProviderError for an error part, and for unsupported content */
  add(part: Part, into: CompletionEvent[]): void;
  /** Whether the model stopped. Later parts are irrelevant. */
  finished(): boolean;
}

export function createAnswerReader(): AnswerReader {
  const toolCalls = createToolCalls();
  const blocks = new Map<string, ReasoningBlock>();
  let blockCount = 0;
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
  const addText = (
    type: "text-delta" | "reasoning-delta",
    text: string,
    into: CompletionEvent[],
  ): void => {
    start(into);
    written = true;
    if (text !== "") into.push({ type, text });
  };

  const addReasoning = (part: ReasoningStreamPart, into: CompletionEvent[]): void => {
    const block = blocks.get(part.id) ?? { text: "", metadata: undefined };
    blocks.set(part.id, block);
    block.metadata = joinMetadata(block.metadata, part.providerMetadata);
    if (part.type === "reasoning-delta") {
      block.text += part.delta;
      addText(part.type, part.delta, into);
    }
    if (part.type === "reasoning-end") endBlock(part.id, into);
  };
  /** Adds the state of a complete reasoning block, which is sent back with the message. */
  const endBlock = (id: string, into: CompletionEvent[]): void => {
    const block = blocks.get(id);
    if (!block || !blocks.delete(id)) return;
    if (block.text === "" && block.metadata === undefined) return;
    start(into);
    into.push({ type: "state", fields: reasoningFields(blockCount, block) });
    blockCount++;
  };

  return {
    add(part, into) {
      switch (part.type) {
        case "response-metadata":
          return start(into, part);
        case "reasoning-start":
        case "reasoning-delta":
        case "reasoning-end":
          return addReasoning(part, into);
        case "text-start":
        case "text-delta":
        case "text-end":
          if (part.type === "text-delta") addText(part.type, part.delta, into);
          if (isSigned(part.providerMetadata))
            into.push({ type: "state", fields: extraContent(part.providerMetadata) });
          return;
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
          // Some providers never end their reasoning blocks.
          for (const id of [...blocks.keys()]) endBlock(id, into);
          const usage = usageReport(part.usage, part.providerMetadata);
          if (usage) into.push({ type: "usage", usage });
          into.push({ type: "finish", reason: reasonOf(part.finishReason) });
          finished = true;
        }
      }
    },
    finished: () => finished,
  };
}

type ReasoningStreamPart = Extract<
  Part,
  { type: "reasoning-start" | "reasoning-delta" | "reasoning-end" }
>;

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

/** An end without a reason means the answer was cut. An unknown reason is an error, not a successful end. */
function reasonOf({ unified, raw }: Extract<Part, { type: "finish" }>["finishReason"]) {
  const reason = reasons.get(unified);
  if (reason) return reason;
  if (unified === "error") throw errorWithin(null, true);
  if (unified === "interrupted" || raw === undefined)
    throw invalidAnswer("answer_cut", "The provider's answer ended before it was complete.");
  throw invalidAnswer("unknown_finish_reason", "The provider sent an unknown finish reason.");
}
