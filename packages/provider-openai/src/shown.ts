import type { CompletionEvent, Json } from "@tollgate/core/provider";
import { isList, isObject, type JsonObject } from "./json.ts";

/** The most sources, and the most images, that one answer shows; a broken upstream could send them without end. */
const maxEntries = 256;

/** Adds what a delta, or a whole message, shows next to its text. */
export function createShown(): (delta: JsonObject, into: CompletionEvent[]) => void {
  const remaining = { annotations: maxEntries, images: maxEntries };
  return (delta, into) => {
    for (const name of ["annotations", "images"] as const) {
      if (delta[name] === undefined) continue;
      const entries = listIn(delta[name]).slice(0, remaining[name]);
      if (entries.length === 0) continue;
      remaining[name] -= entries.length;
      into.push({ type: "shown", name, entries });
    }
  };
}

function listIn(value: Json | undefined): readonly Json[] {
  return isList(value) ? value.filter(isObject) : [];
}
