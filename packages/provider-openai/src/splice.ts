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

type Delta = Extract<CompletionEvent, { type: "text-delta" | "reasoning-delta" }>;

interface Template {
  /** The frame up to its text and from there on, quotes included. */
  readonly before: string;
  readonly after: string;
  readonly event: Delta;
}

/** Frames up to this size are parsed whatever they hold. Characters. */
const maxFrameCharacters = 65_536;
/** Streams whose frames all differ are not looked at for ever. */
const maxUnused = 4;

/** `eventBytes` is the most that one event may have. */
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
 * The value of a JSON string's inner text; null where it is none. Parsed, though it is mostly its own value: a slice would
 * keep all that arrived with it in memory.
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

/** Finds where a frame's text is, and makes sure of it: another text at that place has to come out as that text. */
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

/** The member of the one choice's delta; undefined where parsing the frame does more than to read it. */
function deltaMember(frame: string, name: string): Json | undefined {
  if (!frame.startsWith("data: ") || frame.indexOf("\n") !== frame.length - 2) return undefined;
  const choices = itemsOf(membersOf(jsonIn(frame.slice("data: ".length)))["choices"]);
  const delta = membersOf(membersOf(choices[0])["delta"]);
  // Fragments of calls add up, whether they make an event or not.
  const hasCalls = itemsOf(delta["tool_calls"]).length > 0 || Boolean(delta["function_call"]);
  return choices.length > 1 || hasCalls ? undefined : delta[name];
}
