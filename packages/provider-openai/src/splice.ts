import type { CompletionEvent, Json } from "@tollgate/core/provider";
import { itemsOf, membersOf } from "./json.ts";

/** Reads the next event of a stream without parsing it, if it differs from an earlier one in its text only. */
export interface Splice {
  /** The event in a frame; null where the frame has to be parsed. */
  read(frame: string): CompletionEvent | null;
  /**
   * Remembers a frame and the events it was parsed to, in place of what it knew: a frame can change what those after it
   * come to. Null for what was parsed and is no whole frame.
   */
  learn(frame: string | null, events: readonly CompletionEvent[]): void;
}

type Spoken = Extract<CompletionEvent, { type: "text-delta" | "reasoning-delta" }>;

interface Learned {
  /** The frame up to its text and from there on, quotes included. */
  readonly before: string;
  readonly after: string;
  readonly event: Spoken;
}

/** Frames up to this size are parsed whatever they hold. Characters. */
const longestFrame = 65_536;
/** Streams whose frames all differ are not looked at for ever. */
const mostWithoutUse = 4;

/** `eventBytes` is the most that one event may have. */
export function createSplice(eventBytes: number): Splice {
  const mostCharacters = Math.min(longestFrame, Math.floor(eventBytes / 3));
  let learned: Learned | null = null;
  let withoutUse = 0;
  return {
    read(frame) {
      if (learned === null) return null;
      const { before, after, event } = learned;
      const end = frame.length - after.length;
      if (end <= before.length || frame.length > mostCharacters) return null;
      if (!frame.startsWith(before) || !frame.endsWith(after)) return null;
      const text = textOf(frame.slice(before.length, end));
      if (text === null) return null;
      withoutUse = 0;
      return { ...event, text };
    },
    learn(frame, events) {
      learned = null;
      const [event] = events;
      if (
        frame === null ||
        events.length !== 1 ||
        !event ||
        !isSpoken(event) ||
        withoutUse >= mostWithoutUse
      )
        return;
      if (frame.length > mostCharacters) return;
      withoutUse++;
      learned = learnedFrom(frame, event);
    },
  };
}

function isSpoken(event: CompletionEvent): event is Spoken {
  return event.type === "text-delta" || event.type === "reasoning-delta";
}

/**
 * The value of a JSON string's inner text; null where it is none. Parsed, though it is mostly its own value: a slice would
 * keep all that arrived with it in memory.
 */
function textOf(written: string): string | null {
  const value = jsonIn(`"${written}"`);
  return typeof value === "string" ? value : null;
}

function jsonIn(json: string): Json | undefined {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Finds where a frame's text is, and makes sure of it: another text at that place has to come out as that text. */
function learnedFrom(frame: string, event: Spoken): Learned | null {
  const name = event.type === "text-delta" ? "content" : event.field;
  const quoted = JSON.stringify(event.text);
  const at = name === undefined ? -1 : frame.indexOf(quoted, frame.indexOf(`"${name}":`));
  if (at < 0 || name === undefined) return null;
  const before = frame.slice(0, at + 1);
  const after = frame.slice(at + quoted.length - 1);
  const probe = `${event.text}?`;
  return spokenIn(before + JSON.stringify(probe).slice(1, -1) + after, name) === probe
    ? { before, after, event }
    : null;
}

/** The member of the one choice's delta; undefined where parsing the frame does more than to read it. */
function spokenIn(frame: string, name: string): Json | undefined {
  if (!frame.startsWith("data: ") || frame.indexOf("\n") !== frame.length - 2) return undefined;
  const choices = itemsOf(membersOf(jsonIn(frame.slice("data: ".length)))["choices"]);
  const delta = membersOf(membersOf(choices[0])["delta"]);
  // Fragments of calls add up, whether they make an event or not.
  const addsUp = itemsOf(delta["tool_calls"]).length > 0 || Boolean(delta["function_call"]);
  return choices.length > 1 || addsUp ? undefined : delta[name];
}
