import type { CompletionEvent, Json } from "@tollgate/core/provider";
import type { FrameText, TextEvent } from "./dialect.ts";

/** Reads an event of a stream without parsing it, if only its text differs from an earlier event. */
export interface Splice {
  /** Returns the event in a frame, or null if the frame must be parsed. */
  read(frame: string): CompletionEvent | null;
  /**
   * Replaces the template by a frame and its parsed events, because a frame can change the meaning of later frames.
   * `frame` is null if the parsed text is not a whole frame.
   */
  learn(frame: string | null, events: readonly CompletionEvent[]): void;
}

interface Template {
  /** The frame before and after its text. Both include a quote. */
  readonly before: string;
  readonly after: string;
  readonly event: TextEvent;
}

/** Longer frames are always parsed. In characters. */
const maxFrameCharacters = 65_536;
/** After this many unused templates in a row, the stream is only parsed. */
const maxUnused = 4;

/** `eventBytes` is the size limit of one event. */
export function createSplice(eventBytes: number, frameText: FrameText): Splice {
  const maxCharacters = Math.min(maxFrameCharacters, Math.floor(eventBytes / 3));
  let template: Template | null = null;
  let unused = 0;
  return {
    read(frame) {
      if (template === null) return null;
      const { before, after, event } = template;
      const end = frame.length - after.length;
      if (end <= before.length || frame.length > maxCharacters) return null;
      if (!frame.startsWith(before) || !frame.endsWith(after)) return null;
      const text = textOf(frame.slice(before.length, end));
      if (text === null) return null;
      unused = 0;
      return { ...event, text };
    },
    learn(frame, events) {
      template = null;
      const [event] = events;
      if (frame === null || events.length !== 1 || !event || !isDelta(event) || unused >= maxUnused)
        return;
      if (frame.length > maxCharacters) return;
      unused++;
      template = templateFrom(copyOf(frame), event, frameText);
    },
  };
}

/** Copies a slice of a text. The slice itself would keep the whole text in memory. */
export function copyOf(slice: string): string {
  return Buffer.from(slice).toString();
}

function isDelta(event: CompletionEvent): event is TextEvent {
  return event.type === "text-delta" || event.type === "reasoning-delta";
}

/**
 * Returns the value of a JSON string without its quotes, or null if it is invalid. It always parses, although the value
 * is mostly the same text: a slice would keep the whole chunk in memory.
 */
function textOf(inner: string): string | null {
  const value = jsonIn(`"${inner}"`);
  return typeof value === "string" ? value : null;
}

function jsonIn(json: string): Json | undefined {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Finds the text in a frame. A probe confirms it: another text at that place must parse as that text. */
function templateFrom(frame: string, event: TextEvent, frameText: FrameText): Template | null {
  const name = frameText.memberOf(event);
  const quoted = JSON.stringify(event.text);
  const at = name === undefined ? -1 : frame.indexOf(quoted, frame.indexOf(`"${name}":`));
  if (at < 0 || name === undefined) return null;
  const before = frame.slice(0, at + 1);
  const after = frame.slice(at + quoted.length - 1);
  const probe = `${event.text}?`;
  const chunk = chunkIn(before + JSON.stringify(probe).slice(1, -1) + after);
  return chunk !== undefined && frameText.textIn(chunk, name) === probe
    ? { before, after, event }
    : null;
}

/** The JSON of a frame that consists of one line of data, with or without the name of its event before it. */
function chunkIn(frame: string): Json | undefined {
  const at = frame.startsWith("event: ") ? frame.indexOf("\n") + 1 : 0;
  if (!frame.startsWith("data: ", at) || frame.indexOf("\n", at) !== frame.length - 2)
    return undefined;
  return jsonIn(frame.slice(at + "data: ".length));
}
