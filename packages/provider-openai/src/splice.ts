import type { CompletionEvent, Json } from "@tollgate/core/provider";
import { itemsOf, membersOf } from "./json.ts";

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

type Delta = Extract<CompletionEvent, { type: "text-delta" | "reasoning-delta" }>;

interface Template {
  /** The frame before and after its text. Both include a quote. */
  readonly before: string;
  readonly after: string;
  readonly event: Delta;
}

/** Longer frames are always parsed. In characters. */
const maxFrameCharacters = 65_536;
/** After this many unused templates in a row, the stream is only parsed. */
const maxUnused = 4;

/** `eventBytes` is the size limit of one event. */
export function createSplice(eventBytes: number): Splice {
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
      template = templateFrom(frame, event);
    },
  };
}

function isDelta(event: CompletionEvent): event is Delta {
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
function templateFrom(frame: string, event: Delta): Template | null {
  const name = event.type === "text-delta" ? "content" : event.field;
  const quoted = JSON.stringify(event.text);
  const at = name === undefined ? -1 : frame.indexOf(quoted, frame.indexOf(`"${name}":`));
  if (at < 0 || name === undefined) return null;
  const before = frame.slice(0, at + 1);
  const after = frame.slice(at + quoted.length - 1);
  const probe = `${event.text}?`;
  return deltaMember(before + JSON.stringify(probe).slice(1, -1) + after, name) === probe
    ? { before, after, event }
    : null;
}

/** Returns a member of the only choice's delta, or undefined if parsing the frame has other effects. */
function deltaMember(frame: string, name: string): Json | undefined {
  if (!frame.startsWith("data: ") || frame.indexOf("\n") !== frame.length - 2) return undefined;
  const choices = itemsOf(membersOf(jsonIn(frame.slice("data: ".length)))["choices"]);
  const delta = membersOf(membersOf(choices[0])["delta"]);
  // Fragments of tool calls accumulate, even without an event.
  const hasCalls = itemsOf(delta["tool_calls"]).length > 0 || Boolean(delta["function_call"]);
  return choices.length > 1 || hasCalls ? undefined : delta[name];
}
