import type { Caller } from "../domain/caller.ts";
import type { Limits } from "../domain/limits.ts";
import type { Message } from "../domain/message.ts";
import { parseBody } from "../http/read-json.ts";
import {
  type CachedConversation,
  type ConversationCache,
  createConversationCache,
} from "../sessions/conversation-cache.ts";
import type { InputItem } from "../wire/responses/items.ts";

/** The conversations that each endpoint knows. */
export interface Conversations {
  readonly messages: ConversationCache<Message>;
  readonly input: ConversationCache<InputItem>;
}

export function createConversations({ conversationCacheBytes }: Limits): Conversations {
  return {
    messages: createConversationCache("messages", conversationCacheBytes / 2),
    input: createConversationCache("input", conversationCacheBytes / 2),
  };
}

/** A call as it was read. */
export interface ReadConversation<Item, Call> {
  readonly call: Call;
  /** What an earlier body said of its conversation; null for nothing. */
  readonly known: CachedConversation<Item> | null;
  /** Remembers it for the next one; null where that isn't worth it. */
  readonly remember: ((conversation: Omit<CachedConversation<Item>, "values">) => void) | null;
}

/** How the bodies of one endpoint are read. */
export interface ConversationReader<Item, Call> {
  readonly conversations: ConversationCache<Item>;
  /** Reads a body that lacks what is known of its conversation. */
  readonly read: (body: object, known: CachedConversation<Item> | null) => Call;
}

/**
 * Reads the body of a call. Where an earlier body of the same key began with the same conversation, only what follows is
 * read. That gives the same call: a body that can't be read so is read whole, and refused for what is wrong with all of it.
 */
export function readConversation<Item, Call>(
  bytes: Buffer,
  { organizationId, keyId, source }: Caller,
  limits: Limits,
  { conversations, read }: ConversationReader<Item, Call>,
): ReadConversation<Item, Call> | Promise<ReadConversation<Item, Call>> {
  const whose = `${organizationId}\u0000${keyId}\u0000${source}`;
  const list = bytes.length > limits.bodyBytes ? null : conversations.listOf(whose, bytes);
  const remember = list?.remember ?? null;
  const whole = (body: object): ReadConversation<Item, Call> => ({
    call: read(body, null),
    known: null,
    remember,
  });
  const readWhole = () => {
    const body = parseBody(bytes, limits);
    return body instanceof Promise ? body.then(whole) : whole(body);
  };
  if (!list?.continued) return readWhole();
  const { known, rest } = list.continued;
  return readRest(rest, limits, known, read).then(
    (call) => ({ call, known, remember }),
    // What is wrong with it has its place in the whole.
    readWhole,
  );
}

async function readRest<Item, Call>(
  rest: Buffer,
  limits: Limits,
  known: CachedConversation<Item>,
  read: ConversationReader<Item, Call>["read"],
): Promise<Call> {
  // The comma between both parts is one value more.
  const values = limits.values - known.values - 1;
  return read(await parseBody(rest, { ...limits, values }), known);
}
