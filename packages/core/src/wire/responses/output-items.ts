import type { Completion, CompletionPart } from "../../domain/completion.ts";
import type { FinishReason } from "../../domain/completion-event.ts";
import { type ItemPlace, itemId } from "./item-ids.ts";
import { type ItemStatus, outputText, type StoredItem } from "./items.ts";
import type { Namespaces } from "./namespaces.ts";
import { shownDetails } from "./text-details.ts";

/** A whole answer as output items: one for each part, and one for its sealed state if requested. */
export function outputItems(
  completion: Completion,
  responseId: string,
  namespaces: Namespaces = new Map(),
): readonly StoredItem[] {
  const { parts, finishReason, sealedState } = completion;
  const last = parts.length - 1;
  const items = parts.map((part, index) =>
    outputItem(part, {
      responseId,
      namespaces,
      index,
      status: index === last ? lastStatus(finishReason) : "completed",
    }),
  );
  return sealedState === undefined
    ? items
    : [...items, stateItem(sealedState, { responseId, index: items.length })];
}

/** The state of a whole answer, as a reasoning item without text. It is known only at the end of the answer. */
export function stateItem(
  sealedState: string,
  { responseId, index }: Omit<OutputPlace, "namespaces">,
): StoredItem {
  return {
    id: itemId("rs", responseId, `o${index}`),
    type: "reasoning",
    status: "completed",
    summary: [],
    encrypted_content: sealedState,
  };
}

/** The status of the last part, which the model was writing when it stopped. */
export function lastStatus(finishReason: FinishReason | null): ItemStatus {
  return finishReason === "stop" || finishReason === "tool_calls" ? "completed" : "incomplete";
}

/** The place of an item, and the client's names of functions. */
export interface OutputPlace {
  readonly responseId: string;
  readonly namespaces: Namespaces;
  /** Counts from 0 in the response's output. */
  readonly index: number;
}

/** One part of an answer, as an item. */
export function outputItem(
  part: CompletionPart,
  where: OutputPlace & { readonly status: ItemStatus },
): StoredItem {
  const { responseId, namespaces, index, status } = where;
  const place: ItemPlace = `o${index}`;
  switch (part.type) {
    case "text": {
      const id = itemId("msg", responseId, place);
      const content = [{ ...outputText(part.text), ...shownDetails(part.details) }];
      return { id, type: "message", status, role: "assistant", content };
    }
    case "refusal": {
      const id = itemId("msg", responseId, place);
      const content = [{ type: "refusal", refusal: part.text } as const];
      return { id, type: "message", status, role: "assistant", content };
    }
    case "reasoning": {
      const id = itemId("rs", responseId, place);
      return {
        id,
        type: "reasoning",
        status,
        summary: [{ type: "summary_text", text: part.text }],
      };
    }
    case "tool-call": {
      const id = itemId("fc", responseId, place);
      const { id: callId, function: called } = part.call;
      const { arguments: written } = called;
      const { name, namespace } = namespaces.get(called.name) ?? { name: called.name };
      return {
        id,
        type: "function_call",
        status,
        call_id: callId,
        ...(namespace === undefined ? {} : { namespace }),
        name,
        arguments: written,
      };
    }
  }
}
