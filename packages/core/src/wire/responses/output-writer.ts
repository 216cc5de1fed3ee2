import type { CompletionPart } from "../../domain/completion.ts";
import type { CompletionEvent } from "../../domain/completion-event.ts";
import { createItemWriter, type ItemWriter, type WriteEvent } from "./item-writer.ts";
import type { ItemStatus, StoredItem } from "./items.ts";
import { type OutputPlace, stateItem } from "./output-items.ts";

/** Writes what the model says as output items, one for each part that the fold of the same events has. */
export interface OutputWriter {
  /** The events the client sees of one event. */
  write(event: CompletionEvent): string;
  /** Closes what is open, in the order of the output. */
  end(statusOf: (isLast: boolean) => ItemStatus): string;
  /** Adds the state of the whole answer as an item of its own, after the end. */
  addState(sealedState: string): string;
  /** The items that ended. */
  items(): readonly StoredItem[];
}

export function createOutputWriter(
  place: Pick<OutputPlace, "responseId" | "namespaces">,
  writeEvent: WriteEvent,
): OutputWriter {
  const writers: ItemWriter[] = [];
  const calls = new Map<number, ItemWriter>();
  /** The item that text goes on in; calls are open beside it, since they may overlap. */
  let speaking: ItemWriter | null = null;

  function open(begun: CompletionPart): ItemWriter {
    const writer = createItemWriter(begun, { ...place, index: writers.length }, writeEvent);
    writers.push(writer);
    return writer;
  }

  function stopSpeaking(): string {
    const closed = speaking?.end("completed") ?? "";
    speaking = null;
    return closed;
  }

  function say(type: "text" | "reasoning" | "refusal", text: string): string {
    if (text === "") return "";
    if (speaking?.kind === type) return speaking.add(text);
    const before = stopSpeaking();
    const next = open({ type, text: "" });
    speaking = next;
    return before + next.begin() + next.add(text);
  }

  function beginCall(index: number, id: string, name: string): string {
    const before = stopSpeaking();
    const call = { id, type: "function", function: { name, arguments: "" } } as const;
    const next = open({ type: "tool-call", call });
    if (!calls.has(index)) calls.set(index, next);
    return before + next.begin();
  }

  return {
    write(event) {
      switch (event.type) {
        case "text-delta":
          return say("text", event.text);
        case "reasoning-delta":
          return say("reasoning", event.text);
        case "refusal-delta":
          return say("refusal", event.text);
        case "tool-call-started":
          return beginCall(event.index, event.id, event.name);
        case "tool-call-delta":
          if (event.arguments === "") return "";
          return calls.get(event.index)?.add(event.arguments) ?? "";
        default:
          return "";
      }
    },
    end(statusOf) {
      const last = writers.length - 1;
      return writers.map((writer, index) => writer.end(statusOf(index === last))).join("");
    },
    addState(sealedState) {
      const { responseId } = place;
      const index = writers.length;
      const item = JSON.stringify(stateItem(sealedState, { responseId, index }));
      return ["added", "done"]
        .map((moment) =>
          writeEvent(`response.output_item.${moment}`, `"output_index":${index},"item":${item}`),
        )
        .join("");
    },
    items: () => writers.flatMap((writer) => writer.ended() ?? []),
  };
}
