import type { ResponseHistory } from "../contracts/repositories.ts";
import type { Owner } from "../domain/caller.ts";
import { highestClass } from "../domain/data-class.ts";
import type { Message } from "../domain/message.ts";
import type { StoredResponse } from "../domain/stored-response.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { isLarge, yieldToEventLoop } from "../kernel/event-loop.ts";
import type { Ticket } from "../limits/admission.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { orUnavailable, readContent } from "../pipeline/store-calls.ts";
import type { CachedConversation } from "../sessions/conversation-cache.ts";
import { isResponseId, responseIdOfItem } from "../wire/responses/item-ids.ts";
import type { ContentItem, InputItem, StoredItem } from "../wire/responses/items.ts";
import type { ResponseCall } from "../wire/responses/parse.ts";
import { toMessages } from "../wire/responses/to-messages.ts";

/** The conversation of a Responses request, as items and as messages. */
export interface Conversation {
  /** The messages of the response that it continues, and of all responses before that. */
  readonly history: readonly Message[];
  /** Its own input, with all references resolved. */
  readonly items: readonly ResolvedItem[];
  readonly messages: readonly Message[];
  /**
   * The most sensitive class of the stored content it refers to, and the Session of the response it continues; null for
   * none.
   */
  readonly dataClass: string | null;
  readonly sessionId: string | null;
}

/** Whose stored content is read, and where it takes room. */
interface Reading {
  readonly context: GatewayContext;
  readonly caller: Owner;
  readonly room: Pick<Ticket, "grow">;
}

/**
 * Finds the stored responses that a request refers to, among the caller's own (sections 2.5 to 2.7). Together they may be
 * as large as a request that repeats them all.
 * @throws GatewayError `previous_response_not_found` or `item_not_found`, with one answer for another caller's, deleted,
 * expired and unknown ids; `request_too_large`; `invalid_value` for too many messages
 */
export async function findConversation(
  reading: Reading,
  call: ResponseCall,
  known: CachedConversation<InputItem> | null,
): Promise<Conversation> {
  const { context, caller } = reading;
  const { limits } = context;
  const previous = await previousOf(context, caller, call.previousResponseId);
  const storedBytes = previous?.messages.reduce((bytes, { length }) => bytes + length, 0) ?? 0;
  const left = limits.imageBodyBytes - storedBytes;
  if (left < 0) throw conversationTooLarge(limits.imageBodyBytes);
  reading.room.grow(storedBytes);
  if (isLarge(storedBytes)) await yieldToEventLoop();
  const { items, dataClasses } = await resolveInput(reading, call.input, left);
  const history = await messagesOf(previous?.messages ?? []);
  const messages = known
    ? [...known.messages, ...toMessages(items.slice(known.items.length))]
    : toMessages(items);
  if (history.length + messages.length > limits.messages) throw tooManyMessages(limits.messages);
  const referred = [...dataClasses, ...(previous ? [previous.dataClass] : [])];
  return {
    history,
    items,
    messages,
    dataClass: highestClass(context.dataClasses, referred),
    sessionId: previous?.sessionId ?? null,
  };
}

async function previousOf(
  context: GatewayContext,
  caller: Owner,
  id: string | null,
): Promise<ResponseHistory | null> {
  if (id === null) return null;
  const previous = isResponseId(id)
    ? await readContent(() => context.store.responses.history(caller, id, context.clock.now()))
    : null;
  if (previous) return previous;
  throw new GatewayError("previous_response_not_found", "Previous response not found.", {
    param: "previous_response_id",
  });
}

async function messagesOf(stored: readonly Uint8Array[]): Promise<readonly Message[]> {
  const all: Message[] = [];
  for (const bytes of stored) {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
    if (isLarge(text.length)) await yieldToEventLoop();
    const messages: readonly Message[] = JSON.parse(text);
    all.push(...messages);
    if (isLarge(text.length)) await yieldToEventLoop();
  }
  return all;
}

function tooManyMessages(max: number): GatewayError {
  return new GatewayError(
    "invalid_value",
    `The conversation must have at most ${max} messages, including those it continues.`,
    { param: "input" },
  );
}

/** An item of a request, with its reference resolved. */
type ResolvedItem = ContentItem | StoredItem;

/** The input of a request with all references resolved, and the data classes of the items found. */
interface ResolvedInput {
  readonly items: readonly ResolvedItem[];
  readonly dataClasses: readonly string[];
}

/** How many times as large as a request the stored responses may be that are read to find the items it refers to. */
const readsPerRequest = 8;

/**
 * Replaces references by their items, which must belong to the caller's own live responses. Reads one response at a time.
 * All items together may take `left` bytes as JSON, because a short request can refer to many items, and to the same one
 * many times. The responses that contain them are read whole, so they have a limit, too.
 * @throws GatewayError `item_not_found`, or `request_too_large`
 */
async function resolveInput(
  { context, caller, room }: Reading,
  input: readonly InputItem[],
  left: number,
): Promise<ResolvedInput> {
  const itemsById = new Map<string, StoredItem>();
  const dataClasses: string[] = [];
  const readable = readsPerRequest * context.limits.imageBodyBytes;
  const referred = referencesByResponse(input);
  let [read, used, unyielded] = [0, 0, 0];
  // The first read may be large, and many requests may arrive together.
  if (referred.size > 0) await yieldToEventLoop();
  for (const [responseId, references] of referred) {
    const response = await orUnavailable(
      context.store.responses.get(caller, responseId, context.clock.now()),
    );
    // The first reference to it is the one that the error names, so the rest needs no reading.
    if (!response) break;
    dataClasses.push(response.dataClass);
    const size = response.body.length + response.input.length;
    read += size;
    if (read > readable) throw conversationTooLarge(readable);
    unyielded += size;
    if (isLarge(unyielded)) {
      await yieldToEventLoop();
      unyielded = 0;
    }
    for (const item of itemsOf(response)) {
      const times = references.get(item.id) ?? 0;
      if (times === 0) continue;
      used += times * Buffer.byteLength(JSON.stringify(item));
      if (used > left) throw conversationTooLarge(context.limits.imageBodyBytes);
      itemsById.set(item.id, item);
    }
  }
  room.grow(used);
  const items = input.map((item, at) =>
    item.type === "item_reference" ? (itemsById.get(item.id) ?? notFound(at)) : item,
  );
  return { items, dataClasses };
}

/** Referenced content has the same limit as the body of a request. */
function conversationTooLarge(maxBytes: number): GatewayError {
  return new GatewayError(
    "request_too_large",
    `The stored conversation that the request refers to is larger than ${maxBytes} bytes.`,
  );
}

/** How often the request refers to each item, by the response that contains it. */
function referencesByResponse(
  input: readonly InputItem[],
): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const byResponse = new Map<string, Map<string, number>>();
  for (const item of input) {
    const responseId = item.type === "item_reference" ? responseIdOfItem(item.id) : null;
    if (item.type !== "item_reference" || responseId === null) continue;
    const references = byResponse.get(responseId) ?? new Map<string, number>();
    references.set(item.id, (references.get(item.id) ?? 0) + 1);
    byResponse.set(responseId, references);
  }
  return byResponse;
}

function itemsOf(response: StoredResponse): readonly StoredItem[] {
  const body: { readonly output: readonly StoredItem[] } = JSON.parse(
    Buffer.from(response.body).toString(),
  );
  const input: readonly StoredItem[] = JSON.parse(Buffer.from(response.input).toString());
  return [...body.output, ...input];
}

function notFound(at: number): never {
  throw new GatewayError("item_not_found", "Referenced item not found.", {
    param: `input[${at}]`,
  });
}
