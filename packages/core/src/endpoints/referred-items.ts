import type { Owner } from "../domain/caller.ts";
import type { StoredResponse } from "../domain/stored-response.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { orUnavailable } from "../pipeline/durable.ts";
import { responseIdOfItem } from "../wire/responses/item-ids.ts";
import type { ContentItem, InputItem, StoredItem } from "../wire/responses/items.ts";

/** An item of a request, with what it refers to in the place of a reference. */
export type ResolvedItem = ContentItem | StoredItem;

/** The input of a request, every reference resolved, and the data classes of what was referred to. */
export interface ResolvedInput {
  readonly items: readonly ResolvedItem[];
  readonly dataClasses: readonly string[];
}

/**
 * Replaces references by the items they stand for, which must be in the caller's own live responses. Each response is
 * read once and dropped again, and all items together take at most `room` bytes as JSON: a short request can refer to
 * much, and to the same many times.
 * @throws GatewayError `item_not_found`, or `request_too_large`
 */
export async function resolveInput(
  context: GatewayContext,
  caller: Owner,
  { input, room }: { readonly input: readonly InputItem[]; readonly room: number },
): Promise<ResolvedInput> {
  const found = new Map<string, StoredItem>();
  const dataClasses: string[] = [];
  let left = room;
  for (const [responseId, references] of referencesByResponse(input)) {
    const response = await orUnavailable(
      context.store.responses.get(caller, responseId, context.clock.now()),
    );
    if (!response) continue;
    dataClasses.push(response.dataClass);
    for (const item of itemsOf(response)) {
      const times = references.filter((id) => id === item.id).length;
      if (times === 0) continue;
      left -= times * Buffer.byteLength(JSON.stringify(item));
      if (left < 0) throw conversationTooLarge(context.limits.imageBodyBytes);
      found.set(item.id, item);
    }
  }
  const items = input.map((item, at) =>
    item.type === "item_reference" ? (found.get(item.id) ?? notFound(at)) : item,
  );
  return { items, dataClasses };
}

/** What a request refers to is as bounded as what it may say itself. */
export function conversationTooLarge(maxBytes: number): GatewayError {
  return new GatewayError(
    "request_too_large",
    `The conversation that the request refers to is larger than ${maxBytes} bytes.`,
  );
}

/** The ids of the referred items, by the response they would be in. */
function referencesByResponse(input: readonly InputItem[]): ReadonlyMap<string, readonly string[]> {
  const byResponse = new Map<string, string[]>();
  for (const item of input) {
    const responseId = item.type === "item_reference" ? responseIdOfItem(item.id) : null;
    if (item.type !== "item_reference" || responseId === null) continue;
    const references = byResponse.get(responseId) ?? [];
    references.push(item.id);
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
  throw new GatewayError("item_not_found", "The referenced item was not found.", {
    param: `input[${at}]`,
  });
}
