import type { Json } from "../kernel/stable-json.ts";
import type { ProviderState } from "./message.ts";

/** Fields of provider state, under the names the provider uses. */
export type StateFields = ProviderState["fields"];

/** The most bytes, as JSON, of the state that is kept with one message and its tool calls. */
export const maxStateBytes = 262_144;

/** Where state of a model comes from, and the only place it goes back to: `<gateway>/<vendor>`. */
export function stateOrigin({
  gateway,
  vendor,
}: {
  readonly gateway: string;
  readonly vendor: string;
}): string {
  return `${gateway}/${vendor}`;
}

/** UTF-8 bytes of fields as JSON. */
export function stateBytes(fields: StateFields): number {
  return Buffer.byteLength(JSON.stringify(fields));
}

/** Fields that clients add themselves: they belong to no answer, and go to every provider that has them. */
export const breakpointFields: ReadonlySet<string> = new Set([
  "cache_control",
  "prompt_cache_breakpoint",
]);

/** Fields that hold reasoning as plain text, which clients can read and change. */
export const reasoningTextFields: ReadonlySet<string> = new Set(["reasoning_content", "reasoning"]);

/** Members that arrive in pieces while a model thinks: the pieces of one entry are one text. */
const piecedMembers: ReadonlySet<string> = new Set(["text", "thinking", "summary"]);

/** Collects the state of a message or of a tool call from what arrives of it. */
export interface StateFold {
  add(fields: StateFields): void;
  /** Null where nothing arrived. */
  fields(): StateFields | null;
}

/**
 * Lists grow, and an entry that goes on with the last one of its list (the same `type` and `index`, not signed yet) is
 * joined to it. Objects gain members. Of everything else the last value counts.
 */
export function createStateFold(): StateFold {
  const collected = new Map<string, Collected>();
  return {
    add(fields) {
      for (const [name, value] of Object.entries(fields)) {
        if (value === undefined) continue;
        const before = collected.get(name);
        if (isList(value)) {
          const entries = before?.kind === "list" ? before.entries : [];
          for (const entry of value) addEntry(entries, entry);
          collected.set(name, { kind: "list", entries });
        } else if (isObject(value)) {
          const members = before?.kind === "object" ? before.members : new Map<string, Json>();
          for (const [key, member] of Object.entries(value))
            if (member !== undefined) members.set(key, member);
          collected.set(name, { kind: "object", members });
        } else collected.set(name, { kind: "value", value });
      }
    },
    fields: () =>
      collected.size === 0
        ? null
        : Object.fromEntries([...collected].map(([name, value]) => [name, joined(value)])),
  };
}

type Collected =
  | { readonly kind: "list"; readonly entries: Map<string, Json>[] }
  | { readonly kind: "object"; readonly members: Map<string, Json> }
  | { readonly kind: "value"; readonly value: Json };

/** Key of an entry that is no object. */
const bare = "";

function addEntry(entries: Map<string, Json>[], entry: Json): void {
  const members = isObject(entry) ? definedMembers(entry) : new Map<string, Json>([[bare, entry]]);
  const last = entries.at(-1);
  if (last === undefined || !continues(last, members)) {
    entries.push(members);
    return;
  }
  for (const [name, value] of members) {
    const before = last.get(name);
    if (piecedMembers.has(name) && typeof before === "string" && typeof value === "string")
      last.set(name, before + value);
    else if (value !== null || before === undefined) last.set(name, value);
  }
}

function continues(last: ReadonlyMap<string, Json>, next: ReadonlyMap<string, Json>): boolean {
  if (last.has(bare) || next.has(bare)) return false;
  return (
    last.get("type") === next.get("type") &&
    last.get("index") === next.get("index") &&
    !isText(last.get("signature")) &&
    !isText(last.get("data"))
  );
}

function definedMembers(entry: { readonly [key: string]: Json | undefined }): Map<string, Json> {
  const members = new Map<string, Json>();
  for (const [key, value] of Object.entries(entry))
    if (value !== undefined && key !== bare) members.set(key, value);
  return members;
}

function joined(value: Collected): Json {
  switch (value.kind) {
    case "value":
      return value.value;
    case "object":
      return Object.fromEntries(value.members);
    case "list":
      return value.entries.map((entry) => entry.get(bare) ?? Object.fromEntries(entry));
  }
}

function isText(value: Json | undefined): boolean {
  return typeof value === "string" && value !== "";
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

function isObject(value: Json): value is { readonly [key: string]: Json | undefined } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
