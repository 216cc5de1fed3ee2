import { GatewayError } from "../../errors/gateway-error.ts";
import { wrongValue } from "../read.ts";
import { type ItemPlace, itemId } from "./item-ids.ts";
import type { InputItem, StoredItem } from "./items.ts";

/** The input of a response as stored items. All get ids of this response, even if they had others. */
export function storedInput(
  items: readonly InputItem[],
  responseId: string,
): readonly StoredItem[] {
  return items.map((item, index) => storedItem(item, responseId, `i${index}`));
}

const kinds = {
  message: "msg",
  function_call: "fc",
  function_call_output: "fco",
  reasoning: "rs",
} as const;

function storedItem(item: InputItem, responseId: string, place: ItemPlace): StoredItem {
  if (item.type === "item_reference")
    throw new GatewayError("internal_error", "An item reference is not an item.");
  return { ...item, id: itemId(kinds[item.type], responseId, place), status: "completed" };
}

const defaultLimit = 20;
const maxLimit = 100;

/**
 * One page of a stored response's input items, as JSON text. Newest first, unless the query says otherwise. Other
 * parameters have no effect.
 * @throws GatewayError `invalid_value` naming the parameter at fault
 */
export function listInputItems(items: readonly StoredItem[], query: URLSearchParams): string {
  const limit = limitOf(query);
  const ordered = orderOf(query) === "asc" ? items : items.toReversed();
  const first = startOf(ordered, single(query, "after"));
  const data = ordered.slice(first, first + limit);
  return JSON.stringify({
    object: "list",
    data,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: first + limit < ordered.length,
  });
}

function limitOf(query: URLSearchParams): number {
  const given = single(query, "limit");
  if (given === null) return defaultLimit;
  const limit = /^\d{1,3}$/.test(given) ? Number(given) : 0;
  if (limit < 1 || limit > maxLimit)
    throw wrongValue(`must be an integer between 1 and ${maxLimit}`, "limit");
  return limit;
}

function orderOf(query: URLSearchParams): "asc" | "desc" {
  const given = single(query, "order") ?? "desc";
  if (given !== "asc" && given !== "desc") throw wrongValue("must be asc or desc", "order");
  return given;
}

function startOf(items: readonly StoredItem[], after: string | null): number {
  if (after === null) return 0;
  const at = items.findIndex((item) => item.id === after);
  if (at < 0) throw wrongValue("must be the id of an input item of this response", "after");
  return at + 1;
}

function single(query: URLSearchParams, name: string): string | null {
  const [value = null, ...others] = query.getAll(name);
  if (others.length > 0) throw wrongValue("must be sent only once", name);
  return value;
}
