/** The kind of an item, which is the prefix of its id. */
export type ItemKind = "msg" | "fc" | "fco" | "rs";

/** The position of an item: the n-th of its response's input or output. */
export type ItemPlace = `${"i" | "o"}${number}`;

/** The id of the response that a Step creates. */
export function responseId(stepId: string): string {
  return `resp_${stepId.replaceAll("-", "")}`;
}

const ownResponseId = /^resp_[0-9a-f]{32}$/;

/** Whether an id has the form of this gateway's response ids. Any other text doesn't need to be looked up. */
export function isResponseId(id: string): boolean {
  return ownResponseId.test(id);
}

/** The id of an item. It contains its response's id, so a reference tells where to look. */
export function itemId(kind: ItemKind, response: string, place: ItemPlace): string {
  return `${kind}_${response.slice("resp_".length)}_${place}`;
}

const ownItemId = /^(?:msg|fc|fco|rs)_([0-9a-f]{32})_[io](?:0|[1-9][0-9]{0,8})$/;

/** The id of the response that contains an item. Null if the item's id isn't one of this gateway's. */
export function responseIdOfItem(item: string): string | null {
  const opaque = ownItemId.exec(item)?.[1];
  return opaque === undefined ? null : `resp_${opaque}`;
}
