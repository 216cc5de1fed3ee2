import { type CompletionPart, createDetailsFold } from "../../domain/completion.ts";
import type { CompletionEvent } from "../../domain/completion-event.ts";
import { createItemWriter, type ItemWriter, type WriteEvent } from "./item-writer.ts";
import type { ItemStatus, StoredItem } from "./items.ts";
import { type OutputPlace, stateItem } from "./output-items.ts";

/** Writes an answer's events as output items, one for each part that the fold of the same events has. */
export interface OutputWriter {
  /** Writes the Responses events for these events. */
  write(events: readonly CompletionEvent[]): Iterable<string>;
  /** Closes open items, in the order of the output. */
  end(statusOf: (isLast: boolean) => ItemStatus): Iterable<string>;
  /** Adds the state of the whole answer as a separate item, after the end. */
  addState(sealedState: string): string;
  /** The finished items. */
  items(): readonly StoredItem[];
}

export function createOutputWriter(
  place: Pick<OutputPlace, "responseId" | "namespaces">,
  writeEvent: WriteEvent,
): OutputWriter {
  const writers: ItemWriter[] = [];
  const calls = new Map<number, ItemWriter>();
  /** The item that further text belongs to. Calls can be open at the same time, because they may overlap. */
  let speaking: ItemWriter | null = null;
  /** Details that arrived while no text was open. They belong to the next text. */
  let unclaimed = createDetailsFold();

  function open(begun: CompletionPart): ItemWriter {
    const about = { write: writeEvent, folded: unclaimed };
    const writer = createItemWriter(begun, { ...place, index: writers.length }, about);
    if (begun.type === "text") unclaimed = createDetailsFold();
    writers.push(writer);
    return writer;
  }

  function addDetail(event: CompletionEvent): string {
    if (speaking?.kind === "text") return speaking.addDetail(event);
    unclaimed.add(event);
    return "";
  }

  function stopSpeaking(): Iterable<string> {
    const closed = speaking?.end("completed") ?? [];
    speaking = null;
    return closed;
  }

  function say(type: "text" | "reasoning" | "refusal", text: string): Iterable<string> {
    if (text === "") return [];
    if (speaking?.kind === type) return [speaking.add(text)];
    return beginToSay(type, text);
  }

  function* beginToSay(type: "text" | "reasoning" | "refusal", text: string): Iterable<string> {
    yield* stopSpeaking();
    speaking = open({ type, text: "" });
    yield speaking.begin() + speaking.add(text);
  }

  function* beginCall(index: number, id: string, name: string): Iterable<string> {
    yield* stopSpeaking();
    const call = { id, type: "function", function: { name, arguments: "" } } as const;
    const next = open({ type: "tool-call", call });
    if (!calls.has(index)) calls.set(index, next);
    yield next.begin();
  }

  function write(event: CompletionEvent): Iterable<string> {
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
        if (event.arguments === "") return [];
        return [calls.get(event.index)?.add(event.arguments) ?? ""];
      case "logprobs":
      case "shown":
        return [addDetail(event)];
      default:
        return [];
    }
  }

  return {
    *write(events) {
      for (let at = 0; at < events.length; at++) {
        const event = events[at];
        const next = events[at + 1];
        if (event === undefined) continue;
        // Log probabilities arrive right after their text and are sent with it.
        if (event.type === "text-delta" && event.text !== "" && next?.type === "logprobs") {
          yield addDetail(next);
          yield* say("text", event.text);
          at++;
        } else yield* write(event);
      }
    },
    *end(statusOf) {
      const last = writers.length - 1;
      for (const [index, writer] of writers.entries()) yield* writer.end(statusOf(index === last));
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
