import type { CompletionPart, DetailsFold, TextDetails } from "../../domain/completion.ts";
import type { CompletionEvent } from "../../domain/completion-event.ts";
import type { Json } from "../../kernel/stable-json.ts";
import type { ItemStatus, StoredItem } from "./items.ts";
import { type OutputPlace, outputItem } from "./output-items.ts";
import { shownAnnotations, shownLogprobs } from "./text-details.ts";

/** Writes one event: its type, and its further members as JSON text without the braces. */
export type WriteEvent = (type: string, members: string) => string;

/** Writes the events of one output item, from `added` to `done`. */
export interface ItemWriter {
  readonly kind: CompletionPart["type"];
  /** Adds the item and its only part, both empty. Then the annotations that were waiting for a text. */
  begin(): string;
  /** Adds a piece of the text or the arguments, which isn't empty. Waiting log probabilities go with it. */
  add(fragment: string): string;
  /** Adds a text's details. Annotations are written at once; log probabilities wait for the next piece. */
  addDetail(event: CompletionEvent): string;
  /** Ends the item. Yields one event at a time, because each repeats the whole item. Yields nothing when repeated. */
  end(status: ItemStatus): Iterable<string>;
  /** The finished item; null before its end. */
  ended(): StoredItem | null;
}

/** The names and members of the events of one kind of item. */
interface ItemEvents {
  readonly name: string;
  /** The name of the events around its part. A function call has none. */
  readonly part: string | null;
  /** The member that gives the part's index in the item, as JSON text. */
  readonly place: string;
  /** The member that contains the whole text. */
  readonly whole: string;
}

const itemEvents: Readonly<Record<CompletionPart["type"], ItemEvents>> = {
  text: {
    name: "response.output_text",
    part: "response.content_part",
    place: ',"content_index":0',
    whole: "text",
  },
  refusal: {
    name: "response.refusal",
    part: "response.content_part",
    place: ',"content_index":0',
    whole: "refusal",
  },
  reasoning: {
    name: "response.reasoning_summary_text",
    part: "response.reasoning_summary_part",
    place: ',"summary_index":0',
    whole: "text",
  },
  "tool-call": {
    name: "response.function_call_arguments",
    part: null,
    place: "",
    whole: "arguments",
  },
};

/** `begun` is the part at its start, without text or arguments. `folded` collects the details of a text. */
export function createItemWriter(
  begun: CompletionPart,
  place: OutputPlace,
  { write, folded }: { readonly write: WriteEvent; readonly folded: DetailsFold },
): ItemWriter {
  const events = itemEvents[begun.type];
  const itemOf = (text: string, status: ItemStatus, details?: TextDetails) =>
    outputItem(withText(begun, text, details), { ...place, status });
  const first = itemOf("", "in_progress");
  const index = `"output_index":${place.index}`;
  const where = `"item_id":"${first.id}",${index}${events.place}`;
  const named = first.type === "function_call" ? `,"name":${JSON.stringify(first.name)}` : "";
  let text = "";
  let last: StoredItem | null = null;
  let sentLogprobs = 0;
  let sentAnnotations = 0;

  const writePart = (moment: "added" | "done", item: StoredItem): string =>
    events.part === null
      ? ""
      : write(`${events.part}.${moment}`, `${where},"part":${JSON.stringify(partOf(item))}`);

  /** The log probabilities from this `logprobs` event on. Every event about a text includes some. */
  const logprobsFrom = (start: number): string => {
    if (begun.type !== "text") return "";
    const pieces = folded.details().logprobs.slice(start);
    return `,"logprobs":${JSON.stringify(shownLogprobs(pieces))}`;
  };

  const writeAnnotations = (entries: readonly Json[]): string =>
    shownAnnotations(entries)
      .map((annotation) => {
        const members = { annotation_index: sentAnnotations++, annotation };
        return write(
          `${events.name}.annotation.added`,
          `${where},${JSON.stringify(members).slice(1, -1)}`,
        );
      })
      .join("");

  return {
    kind: begun.type,
    begin: () =>
      write("response.output_item.added", `${index},"item":${JSON.stringify(withoutPart(first))}`) +
      writePart("added", first) +
      (begun.type === "text" ? writeAnnotations(folded.details().annotations) : ""),
    add(fragment) {
      text += fragment;
      const delta = `"delta":${JSON.stringify(fragment)}${logprobsFrom(sentLogprobs)}`;
      sentLogprobs = folded.details().logprobs.length;
      return write(`${events.name}.delta`, `${where},${delta}`);
    },
    addDetail: (event) => writeAnnotations(folded.add(event)),
    *end(status) {
      if (last !== null) return;
      last = itemOf(text, status, folded.details());
      const whole = `${named},"${events.whole}":${JSON.stringify(text)}${logprobsFrom(0)}`;
      yield write(`${events.name}.done`, where + whole);
      yield writePart("done", last);
      yield write("response.output_item.done", `${index},"item":${JSON.stringify(last)}`);
    },
    ended: () => last,
  };
}

function withText(
  part: CompletionPart,
  text: string,
  details: TextDetails | undefined,
): CompletionPart {
  if (part.type === "text") return { type: "text", text, ...(details && { details }) };
  if (part.type !== "tool-call") return { type: part.type, text };
  const { id, type, function: called } = part.call;
  return { type: "tool-call", call: { id, type, function: { ...called, arguments: text } } };
}

/** The part of an item, if it has one. */
function partOf(item: StoredItem): unknown {
  if (item.type === "message") return item.content[0];
  return item.type === "reasoning" ? item.summary[0] : null;
}

/** The item as it is first added, without its part. */
function withoutPart(item: StoredItem): StoredItem {
  if (item.type === "message") return { ...item, content: [] };
  return item.type === "reasoning" ? { ...item, summary: [] } : item;
}
