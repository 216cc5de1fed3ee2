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

/** The result of reading an earlier body's list. A list that begins with the same bytes means the same. */
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

/** Messages as they were sent to a provider, and their size. */
export interface SentMessages {
  readonly messages: readonly Message[];
  readonly size: MessagesSize;
}

/** A body whose list begins like an earlier one. */
export interface ContinuedBody<Item> {
  readonly known: CachedConversation<Item>;
  /** The body without the known part of its list. */
  readonly rest: Buffer;
}

/** The list of one body, which can be looked up and remembered. */
export interface BodyList<Item> {
  /** Null if the list doesn't begin with a known conversation. */
  readonly continued: ContinuedBody<Item> | null;
  /** Remembers the list for the next body. Replaces the list that it continued. */
  remember(conversation: Omit<CachedConversation<Item>, "values">): void;
}

/** The conversations of one endpoint's latest bodies. */
export interface ConversationCache<Item> {
  /** Null if the body is too small or too large for the cache. Each owner sees only its own conversations. */
  listOf(owner: string, body: Buffer): BodyList<Item> | null;
}

interface Entry<Item> {
  readonly place: string;
  /** The list between its brackets, as a part of its body. */
  readonly text: Buffer;
  readonly bytes: number;
  readonly conversation: CachedConversation<Item>;
}

/** Below this size, reading a body costs less than looking it up. */
const minBodyBytes = 8_192;
/** The most conversations of one caller that begin with the same two items. */
const maxPerPlace = 16;
/** A conversation takes about this many times its size: it is kept as bytes, as messages and in its provider's form. */
const copiesKept = 4;
const markBytes = 64;

/**
 * Remembers the latest bodies, in at most `maxBytes` of memory. The least recently used conversations are dropped first. A
 * growing conversation repeats itself in every request. The repeated part is only compared as bytes here, not parsed,
 * checked and hashed again.
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
    // Moves the place to the end of the map, where the latest one belongs.
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

/** The key under which conversations are found: their first two items, which few conversations share. */
function placeOf(owner: string, body: Buffer, start: number): string | null {
  const first = endOfValue(body, afterSpace(body, start));
  const separator = afterSpace(body, first);
  if (body[separator] !== comma) return null;
  const end = endOfValue(body, afterSpace(body, separator + 1));
  const mark = body.toString("latin1", Math.max(start, end - markBytes), end);
  return `${owner}\u0000${end - start}\u0000${mark}`;
}

/** Whether a list begins with this text, and continues with another item or ends right after it. */
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
