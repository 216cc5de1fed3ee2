import type { CompletionPart } from "../../domain/completion.ts";
import type { ItemStatus, StoredItem } from "./items.ts";
import { type OutputPlace, outputItem } from "./output-items.ts";

/** Writes one event: its type, and its further members as JSON text without the braces. */
export type WriteEvent = (type: string, members: string) => string;

/** Writes the events of one output item, from `added` to `done`. */
export interface ItemWriter {
  readonly kind: CompletionPart["type"];
  /** The item and its one part appear, both empty. */
  begin(): string;
  /** More of the text, or of the arguments; not empty. */
  add(fragment: string): string;
  /** Nothing the second time. */
  end(status: ItemStatus): string;
  /** The item as it ended; null before. */
  ended(): StoredItem | null;
}

/** How the events of one kind of item are called, and what they carry. */
interface ItemEvents {
  readonly name: string;
  /** The events around its part; a function call has none. */
  readonly part: string | null;
  /** What tells the part from others of the item, and what follows each delta and the whole, as JSON text. */
  readonly place: string;
  readonly after: string;
  /** The member that has the whole. */
  readonly whole: string;
}

const itemEvents: Readonly<Record<CompletionPart["type"], ItemEvents>> = {
  text: {
    name: "response.output_text",
    part: "response.content_part",
    place: ',"content_index":0',
    after: ',"logprobs":[]',
    whole: "text",
  },
  refusal: {
    name: "response.refusal",
    part: "response.content_part",
    place: ',"content_index":0',
    after: "",
    whole: "refusal",
  },
  reasoning: {
    name: "response.reasoning_summary_text",
    part: "response.reasoning_summary_part",
    place: ',"summary_index":0',
    after: "",
    whole: "text",
  },
  "tool-call": {
    name: "response.function_call_arguments",
    part: null,
    place: "",
    after: "",
    whole: "arguments",
  },
};

/** `begun` is the part as it begins: without text or arguments. */
export function createItemWriter(
  begun: CompletionPart,
  place: OutputPlace,
  write: WriteEvent,
): ItemWriter {
  const events = itemEvents[begun.type];
  const itemOf = (text: string, status: ItemStatus) =>
    outputItem(withText(begun, text), { ...place, status });
  const first = itemOf("", "in_progress");
  const index = `"output_index":${place.index}`;
  const where = `"item_id":"${first.id}",${index}${events.place}`;
  const named = first.type === "function_call" ? `,"name":${JSON.stringify(first.name)}` : "";
  let text = "";
  let last: StoredItem | null = null;

  const writePart = (moment: "added" | "done", item: StoredItem): string =>
    events.part === null
      ? ""
      : write(`${events.part}.${moment}`, `${where},"part":${JSON.stringify(partOf(item))}`);

  return {
    kind: begun.type,
    begin: () =>
      write("response.output_item.added", `${index},"item":${JSON.stringify(withoutPart(first))}`) +
      writePart("added", first),
    add(fragment) {
      text += fragment;
      return write(
        `${events.name}.delta`,
        `${where},"delta":${JSON.stringify(fragment)}${events.after}`,
      );
    },
    end(status) {
      if (last !== null) return "";
      last = itemOf(text, status);
      const whole = `${named},"${events.whole}":${JSON.stringify(text)}${events.after}`;
      return (
        write(`${events.name}.done`, where + whole) +
        writePart("done", last) +
        write("response.output_item.done", `${index},"item":${JSON.stringify(last)}`)
      );
    },
    ended: () => last,
  };
}

function withText(part: CompletionPart, text: string): CompletionPart {
  if (part.type !== "tool-call") return { type: part.type, text };
  const { id, type, function: called } = part.call;
  return { type: "tool-call", call: { id, type, function: { ...called, arguments: text } } };
}

/** The part an item has, where it has parts. */
function partOf(item: StoredItem): unknown {
  if (item.type === "message") return item.content[0];
  return item.type === "reasoning" ? item.summary[0] : null;
}

/** The item as it is added, before its part. */
function withoutPart(item: StoredItem): StoredItem {
  if (item.type === "message") return { ...item, content: [] };
  return item.type === "reasoning" ? { ...item, summary: [] } : item;
}
