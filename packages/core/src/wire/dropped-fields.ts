import type { Limits } from "../domain/limits.ts";
import { noDroppedFields } from "../domain/provider-state.ts";
import type { DroppedFields } from "../domain/step.ts";
import type { KnownItems, ReadContext } from "./read.ts";

const maxNames = 32;
const maxNameLength = 64;
/** The name under which members beyond the maximum number of names are counted. */
const otherNames = "…";

/** The options for reading one body, in addition to its limits. */
export interface BodyOptions {
  /** Default: `text`. */
  readonly toolOutputs?: ReadContext["toolOutputs"];
  /** Default: nothing. */
  readonly known?: KnownItems;
}

/** The members dropped from one body, by name. */
export interface DroppedCounts {
  /** Those dropped from the conversation. */
  readonly ofConversation: () => DroppedFields;
  readonly all: () => DroppedFields;
}

/**
 * Starts to read one body. Counts the members that readers drop by name, cut to 64 characters. From the 33rd name on, they
 * count under `…`.
 */
export function beginReading(
  limits: Limits,
  { toolOutputs = "text", known = {} }: BodyOptions = {},
): { readonly reading: ReadContext; readonly dropped: DroppedCounts } {
  let counts: Map<string, number> | null = null;
  let ofConversation = known.droppedFields ?? noDroppedFields;
  const noteDropped = (given: string): void => {
    counts ??= new Map(Object.entries(ofConversation));
    const name = shortName(given);
    const counted = counts.has(name) || counts.size < maxNames ? name : otherNames;
    counts.set(counted, (counts.get(counted) ?? 0) + 1);
  };
  const all = (): DroppedFields => (counts === null ? ofConversation : Object.fromEntries(counts));
  const conversationRead = (): void => {
    ofConversation = all();
  };
  return {
    reading: { ...limits, toolOutputs, noteDropped, known, conversationRead },
    dropped: { ofConversation: () => ofConversation, all },
  };
}

/** Shortens a name, and replaces characters that a store or a terminal may not accept. Clients can send any name. */
function shortName(name: string): string {
  const short = name.length > maxNameLength ? `${name.slice(0, maxNameLength - 1)}…` : name;
  return short.toWellFormed().replaceAll(/\p{C}/gu, "\uFFFD");
}
