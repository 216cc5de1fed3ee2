import type { MessagesSize } from "../domain/estimate.ts";
import type { Message } from "../domain/message.ts";
import type { DroppedFields } from "../domain/step.ts";
import {
  afterSpace,
  beforeSpace,
  closeBracket,
  comma,
  endOfList,
  endOfValue,
  startOfList,
} from "../kernel/json-list.ts";
import type { KnownChain } from "./transcript-chain.ts";

/** What the list of an earlier body became: a body that begins with the same bytes says the same. */
export interface CachedConversation<Item> {
  readonly items: readonly Item[];
  /** The messages of the items, independent of the items that follow. */
  readonly messages: readonly Message[];
  readonly chain: KnownChain;
  /** The messages as sent to a provider; null unless all of them were sent unchanged. */
  readonly sent: SentMessages | null;
  /** The members dropped from its items. */
  readonly droppedFields: DroppedFields;
  /** Values in its text, as a body's limit counts them. */
  readonly values: number;
}

/** Messages as a provider got them, and what they come to. */
export interface SentMessages {
  readonly messages: readonly Message[];
  readonly size: MessagesSize;
}

/** A body whose list begins as an earlier one's. */
export interface ContinuedBody<Item> {
  readonly known: CachedConversation<Item>;
  /** The body without the known part of its list. */
  readonly rest: Buffer;
}

/** The list of one body, to look for and to remember. */
export interface BodyList<Item> {
  /** Null if no conversation that is known begins the list. */
  readonly continued: ContinuedBody<Item> | null;
  /** Remembers the list for the next body, instead of the one that it continued. */
  remember(conversation: Omit<CachedConversation<Item>, "values">): void;
}

/** The conversations of one endpoint's latest bodies. */
export interface ConversationCache<Item> {
  /** Null for a body that isn't worth it. Whose it is takes part: no caller meets what another one sent. */
  listOf(owner: string, body: Buffer): BodyList<Item> | null;
}

interface Entry<Item> {
  readonly place: string;
  /** The list between its brackets, as a part of its body. */
  readonly text: Buffer;
  readonly bytes: number;
  readonly conversation: CachedConversation<Item>;
}

/** Below this, reading costs less than looking. */
const minBodyBytes = 8_192;
/** Conversations of one caller whose first two items are the same. */
const maxPerPlace = 16;
/** A conversation is kept as bytes, as messages and in its provider's form. */
const copiesKept = 4;
const markBytes = 64;

/**
 * Remembers the latest bodies, at most `mostBytes` of memory for all of them; who was not heard of the longest goes first.
 * A growing conversation repeats itself in every request: found here, it is compared as bytes, and neither parsed nor
 * checked nor hashed again.
 */
export function createConversationCache<Item>(
  member: string,
  maxBytes: number,
): ConversationCache<Item> {
  const places = new Map<string, Entry<Item>[]>();
  let bytes = 0;

  function drop(entry: Entry<Item>): void {
    const alike = places.get(entry.place);
    const at = alike?.indexOf(entry) ?? -1;
    if (!alike || at < 0) return;
    alike.splice(at, 1);
    bytes -= entry.bytes;
    if (alike.length === 0) places.delete(entry.place);
  }

  function add(entry: Entry<Item>): void {
    const alike = places.get(entry.place) ?? [];
    // The latest place is the last of the map.
    places.delete(entry.place);
    places.set(entry.place, alike);
    alike.unshift(entry);
    bytes += entry.bytes;
    const last = alike.length > maxPerPlace ? alike.at(-1) : undefined;
    if (last) drop(last);
    while (bytes > maxBytes) {
      const [oldestPlace] = places.values();
      const oldest = oldestPlace?.at(-1);
      if (!oldest) break;
      drop(oldest);
    }
  }

  return {
    listOf(owner, body) {
      if (body.length < minBodyBytes || body.length * copiesKept > maxBytes) return null;
      const start = startOfList(body, member);
      if (start < 0) return null;
      const place = placeOf(owner, body, start);
      if (place === null) return null;
      const found = places.get(place)?.find(({ text }) => begins(body, start, text));
      return {
        continued: found ? continuedBody(found, body, start) : null,
        remember(conversation) {
          const end = endOfList(body, start + (found?.text.length ?? 0));
          const values = (found?.conversation.values ?? 0) + end.values;
          const text = body.subarray(start, beforeSpace(body, end.at));
          if (found) drop(found);
          const bytes = body.length * copiesKept;
          add({ place, text, bytes, conversation: { ...conversation, values } });
        },
      };
    },
  };
}

/** Where conversations are looked for: by their first two items, which hardly any two have in common. */
function placeOf(owner: string, body: Buffer, start: number): string | null {
  const first = endOfValue(body, afterSpace(body, start));
  const separator = afterSpace(body, first);
  if (body[separator] !== comma) return null;
  const end = endOfValue(body, afterSpace(body, separator + 1));
  const mark = body.toString("latin1", Math.max(start, end - markBytes), end);
  return `${owner}\u0000${end - start}\u0000${mark}`;
}

/** Whether a list begins with a text, and goes on, or ends, right after it. */
function begins(body: Buffer, start: number, text: Buffer): boolean {
  const end = start + text.length;
  const next = afterSpace(body, end);
  const isWhole = body[next] === closeBracket;
  const goesOn = body[next] === comma && body[afterSpace(body, next + 1)] !== closeBracket;
  return (isWhole || goesOn) && body.compare(text, 0, text.length, start, end) === 0;
}

function continuedBody<Item>(
  { text, conversation }: Entry<Item>,
  body: Buffer,
  start: number,
): ContinuedBody<Item> {
  const next = afterSpace(body, start + text.length);
  const from = body[next] === comma ? next + 1 : next;
  return {
    known: conversation,
    rest: Buffer.concat([body.subarray(0, start), body.subarray(from)]),
  };
}
