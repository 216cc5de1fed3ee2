import type { ResponseHistory } from "../contracts/store.ts";
import type { Owner } from "../domain/caller.ts";
import type { Message } from "../domain/message.ts";
import type { StoredResponse } from "../domain/stored-response.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { durable } from "../pipeline/durable.ts";
import type { Line } from "../pipeline/line.ts";
import { responseIdOfItem } from "../wire/responses/item-ids.ts";
import type { InputItem, StoredItem } from "../wire/responses/items.ts";
import type { ResponseCall } from "../wire/responses/parse.ts";
import { toMessages } from "../wire/responses/to-messages.ts";

/** What a Responses request refers to and says, as items and as messages. */
export interface Conversation {
  /** The messages of the response it continues, and of all before that. */
  readonly history: readonly Message[];
  /** Its own input, with every reference replaced by what it refers to. */
  readonly items: readonly ResolvedItem[];
  readonly messages: readonly Message[];
  /** The most sensitive class of what it refers to, and the Session of what it continues; null for nothing. */
  readonly dataClass: string | null;
  readonly sessionId: string | null;
}

export type ResolvedItem = Exclude<InputItem, { readonly type: "item_reference" }> | StoredItem;

/**
 * Finds what a request refers to among the caller's own stored responses (sections 2.5 to 2.7).
 * @throws GatewayError `previous_response_not_found` or `item_not_found`: one answer for what is another's, deleted,
 * expired or never was.
 */
export async function findConversation(
  line: Line,
  caller: Owner,
  call: ResponseCall,
): Promise<Conversation> {
  const previous = await previousOf(line, caller, call.previousResponseId);
  const responses = await referredResponses(line, caller, call.input);
  const items = call.input.map((item, at) =>
    item.type === "item_reference" ? referredItem(responses, item.id, at) : item,
  );
  const referred = [...responses.values(), ...(previous ? [previous.response] : [])];
  const history = previous?.messages.flatMap(messagesOf) ?? [];
  const messages = toMessages(items);
  if (history.length + messages.length === 0) throw nothingSaid();
  return {
    history,
    items,
    messages,
    dataClass: mostSensitive(line.dataClasses, referred),
    sessionId: previous?.response.sessionId ?? null,
  };
}

/** References to reasoning alone say nothing to a model. */
function nothingSaid(): GatewayError {
  return new GatewayError("invalid_value", "The input holds nothing to say to the model.", {
    param: "input",
  });
}

async function previousOf(
  line: Line,
  caller: Owner,
  id: string | null,
): Promise<ResponseHistory | null> {
  if (id === null) return null;
  const previous = await durable(line.store.responses.history(caller, id, line.clock.now()));
  if (previous) return previous;
  throw new GatewayError("previous_response_not_found", "The previous response was not found.", {
    param: "previous_response_id",
  });
}

/** The stored responses whose items are referred to, each read once. */
async function referredResponses(
  line: Line,
  caller: Owner,
  input: readonly InputItem[],
): Promise<ReadonlyMap<string, StoredResponse>> {
  const ids = new Set(
    input.flatMap((item) =>
      item.type === "item_reference" ? (responseIdOfItem(item.id) ?? []) : [],
    ),
  );
  const found = new Map<string, StoredResponse>();
  for (const id of ids) {
    const response = await durable(line.store.responses.get(caller, id, line.clock.now()));
    if (response) found.set(id, response);
  }
  return found;
}

function referredItem(
  responses: ReadonlyMap<string, StoredResponse>,
  id: string,
  at: number,
): StoredItem {
  const response = responses.get(responseIdOfItem(id) ?? "");
  const item = response && itemsOf(response).find((candidate) => candidate.id === id);
  if (item) return item;
  throw new GatewayError("item_not_found", "The referenced item was not found.", {
    param: `input[${at}]`,
  });
}

function itemsOf(response: StoredResponse): readonly StoredItem[] {
  const body: { readonly output: readonly StoredItem[] } = JSON.parse(
    Buffer.from(response.body).toString(),
  );
  const input: readonly StoredItem[] = JSON.parse(Buffer.from(response.input).toString());
  return [...body.output, ...input];
}

function messagesOf(bytes: Uint8Array): readonly Message[] {
  return JSON.parse(Buffer.from(bytes).toString());
}

function mostSensitive(
  dataClasses: readonly string[],
  responses: readonly StoredResponse[],
): string | null {
  const ranks = responses.map(({ dataClass }) => dataClasses.indexOf(dataClass));
  return dataClasses[Math.max(-1, ...ranks)] ?? null;
}
