import { isList, isObject, type Json } from "../kernel/stable-json.ts";
import { endsInHalf } from "../kernel/surrogates.ts";
import type { ProviderState } from "./message.ts";
import type { DroppedFields } from "./step.ts";

/** Fields of provider state, under the names the provider uses. */
export type StateFields = ProviderState["fields"];

/** The most state that is recorded with one message and its tool calls, in bytes of JSON. */
export const maxStateBytes = 262_144;

/** The origin of a model's state, and the only place it is sent back to: `<gateway>/<vendor>`. */
export function stateOrigin({
  gateway,
  vendor,
}: {
  readonly gateway: string;
  readonly vendor: string;
}): string {
  return `${gateway}/${vendor}`;
}

/** No dropped fields. */
export const noDroppedFields: DroppedFields = Object.freeze({});

/** UTF-8 bytes of fields as JSON. */
export function stateBytes(fields: StateFields): number {
  return Buffer.byteLength(JSON.stringify(fields));
}

/** Fields that clients add themselves. They belong to no answer, and go to every provider that supports them. */
export const breakpointFields: ReadonlySet<string> = new Set([
  "cache_control",
  "prompt_cache_breakpoint",
]);

/** Fields that hold reasoning as plain text, which clients can read and change. */
export const reasoningTextFields: ReadonlySet<string> = new Set(["reasoning_content", "reasoning"]);

/** Members whose text only the provider can read, so it is sealed. */
const opaqueMembers: ReadonlySet<string> = new Set([
  "encrypted_content",
  "signature",
  "thought_signature",
  "thoughtSignature",
  "data",
  "provider_metadata",
]);

/** Members of which every text is opaque, at any depth. */
const opaqueFields: ReadonlySet<string> = new Set(["extra_content"]);

/** Whether every text below a member is opaque. */
export const isOpaqueField = (member: string): boolean => opaqueFields.has(member);

/** Whether only the provider can read a text with the name of this member. */
export const isOpaqueMember = (member: string): boolean => opaqueMembers.has(member);

/** Members that arrive in pieces while a model thinks. The pieces of one entry form one text. */
const piecedMembers: ReadonlySet<string> = new Set(["text", "thinking", "summary"]);

/**
 * The most state that one message may have, both in a request and in an answer: clients couldn't send back more. It is large
 * enough for an answer that is all reasoning. Sealing and opening more texts would take too long.
 */
export const maxMessageState = { bytes: 2_621_440, values: 65_536, sealedTexts: 4_096 } as const;

/** How deeply one field of state may nest, so that a request can bring it back. */
export const maxStateDepth = 32;

export interface StateSize {
  readonly values: number;
  /** The approximate bytes of the JSON text once every text in it is sealed. */
  readonly bytes: number;
  /** Texts that are sealed. */
  readonly sealedTexts: number;
}

/** Collects the state of a message or a tool call from its pieces. */
export interface StateFold {
  add(fields: StateFields): void;
  /** Null if no state arrived. */
  fields(): StateFields | null;
}

/**
 * Lists grow. An entry with the `type` and `index` of the list's last entry is joined to that one, unless it is already
 * signed. Objects gain members. Of any other value, the last one counts.
 */
export function createStateFold(scale: StateSizeCounter = createStateSizeCounter()): StateFold {
  const collected = new Map<string, Collected>();
  return {
    add(fields) {
      for (const [name, value] of Object.entries(fields)) {
        if (value === undefined) continue;
        const before = collected.get(name);
        if (isList(value)) {
          const entries = before?.kind === "list" ? before.entries : [];
          for (const entry of value) addEntry(entries, entry, { field: name, scale });
          collected.set(name, { kind: "list", entries });
        } else if (isObject(value)) {
          const members = before?.kind === "object" ? before.members : new Map<string, Json>();
          for (const [key, member] of Object.entries(value))
            put(members, key, member, { field: name, scale });
          collected.set(name, { kind: "object", members });
        } else {
          scale.replace(before?.kind === "value" ? before.value : undefined, value, {
            field: name,
          });
          collected.set(name, { kind: "value", value });
        }
      }
    },
    fields: () =>
      collected.size === 0
        ? null
        : Object.fromEntries([...collected].map(([name, value]) => [name, joined(value)])),
  };
}

/** Where a value belongs: to a field, and to a member of it or of one of its entries. */
interface StatePlace {
  readonly field: string;
  readonly member?: string;
}

/** Measures the state that folds collect, with its pieces joined. */
export interface StateSizeCounter {
  replace(before: Json | undefined, after: Json, place: StatePlace): void;
  /** Counts a further piece of a text. */
  append(text: string): void;
  size(): StateSize;
}

/** The approximate bytes that a seal adds to a text, for an origin of usual length. */
const sealBytes = 64;

export function createStateSizeCounter(): StateSizeCounter {
  const sum = { values: 0, bytes: 0, sealedTexts: 0 };
  const weigh = (name: string, value: Json, isOpaque: boolean, sign: 1 | -1): void => {
    sum.values += sign;
    sum.bytes += sign * 3;
    if (isText(value)) {
      sum.bytes += sign * (Buffer.byteLength(value) + sealBytes);
      if (isOpaque || isOpaqueMember(name)) sum.sealedTexts += sign;
    } else if (isList(value)) for (const entry of value) weigh(name, entry, isOpaque, sign);
    else if (isObject(value))
      for (const [key, member] of Object.entries(value)) {
        sum.bytes += sign * (key.length + 3);
        if (member !== undefined) weigh(key, member, isOpaque || isOpaqueField(key), sign);
      }
  };
  return {
    replace(before, after, { field, member = field }) {
      if (before === after) return;
      const isOpaque = isOpaqueField(field) || isOpaqueField(member);
      if (before !== undefined) weigh(member, before, isOpaque, -1);
      weigh(member, after, isOpaque, 1);
    },
    append(text) {
      sum.bytes += Buffer.byteLength(text);
    },
    size: () => sum,
  };
}

/** The size of state that arrived at once. */
export function sizeOfState(fields: StateFields): StateSize {
  const counter = createStateSizeCounter();
  for (const [field, value] of Object.entries(fields))
    if (value !== undefined) counter.replace(undefined, value, { field });
  return counter.size();
}

interface MeasuredField {
  readonly field: string;
  readonly scale: StateSizeCounter;
}

function put(
  members: Map<string, Json>,
  member: string,
  value: Json | undefined,
  { field, scale }: MeasuredField,
): void {
  if (value === undefined) return;
  scale.replace(members.get(member), value, { field, member });
  members.set(member, value);
}

type Collected =
  | { readonly kind: "list"; readonly entries: Map<string, Json>[] }
  | { readonly kind: "object"; readonly members: Map<string, Json> }
  | { readonly kind: "value"; readonly value: Json };

/** The key of an entry that isn't an object. */
const bare = "";

function addEntry(entries: Map<string, Json>[], entry: Json, measured: MeasuredField): void {
  const { field, scale } = measured;
  const members = isObject(entry) ? definedMembers(entry) : new Map<string, Json>([[bare, entry]]);
  const last = entries.at(-1);
  if (last === undefined || !continues(last, members)) {
    entries.push(members);
    scale.replace(undefined, entry, { field });
    return;
  }
  for (const [name, value] of members) {
    const before = last.get(name);
    if (piecedMembers.has(name) && typeof before === "string" && typeof value === "string") {
      last.set(name, before + value);
      scale.append(value);
    } else if (value !== null || before === undefined) put(last, name, value, measured);
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

/** Joins the halves of surrogate pairs that the pieces of one text split between them. */
export interface SurrogateJoiner {
  /** Returns the fields without a half at the end of their last text, which waits for the next piece. */
  join(fields: StateFields): StateFields;
  /** Returns the halves that were never continued, as a last piece. Null for none. */
  flush(): StateFields | null;
}

/** An entry of a list, or a piece of one. */
type Piece = { readonly [key: string]: Json | undefined };

export function createSurrogateJoiner(): SurrogateJoiner {
  const waiting = new Map<string, Piece>();

  const joinList = (name: string, list: readonly Json[]): readonly Json[] => {
    const entries = [...list];
    const half = waiting.get(name);
    if (half !== undefined) entries.splice(0, 1, ...joinHalf(half, entries[0]));
    waiting.delete(name);
    const last = entries.pop();
    if (last === undefined) return entries;
    const [whole, rest] = isObject(last) ? splitHalf(last) : [last, null];
    if (rest !== null) waiting.set(name, rest);
    return [...entries, whole];
  };
  return {
    join(fields) {
      const lists = Object.entries(fields).flatMap(([name, value]) =>
        value !== undefined && isList(value) && (waiting.has(name) || lastIsHalf(value))
          ? [[name, joinList(name, value)] as const]
          : [],
      );
      return lists.length === 0 ? fields : { ...fields, ...Object.fromEntries(lists) };
    },
    flush() {
      const left = [...waiting].map(([name, half]) => [name, [half]] as const);
      waiting.clear();
      return left.length === 0 ? null : Object.fromEntries(left);
    },
  };
}

/** Joins a half with the next entry if that continues it; otherwise returns both. */
function joinHalf(half: Piece, next: Json | undefined): readonly Json[] {
  if (next === undefined) return [half];
  if (!isObject(next)) return [half, next];
  if (next["type"] !== half["type"] || next["index"] !== half["index"]) return [half, next];
  const texts = Object.entries(half).flatMap(([name, text]) =>
    piecedMembers.has(name) && typeof text === "string"
      ? [[name, text + (typeof next[name] === "string" ? next[name] : "")] as const]
      : [],
  );
  return [{ ...next, ...Object.fromEntries(texts) }];
}

/** Splits off the half at the end of an entry's text, if the entry may continue. */
function splitHalf(entry: Piece): readonly [whole: Piece, half: Piece | null] {
  const ends = [...piecedMembers].filter((name) => isHalf(entry[name] ?? null));
  if (ends.length === 0 || isText(entry["signature"]) || isText(entry["data"]))
    return [entry, null];
  const { type, index } = entry;
  const whole: Record<string, Json | undefined> = { ...entry };
  const half: Record<string, Json | undefined> = {
    ...(type === undefined ? {} : { type }),
    ...(index === undefined ? {} : { index }),
  };
  for (const name of ends) {
    const text = String(entry[name]);
    whole[name] = text.slice(0, -1);
    half[name] = text.slice(-1);
  }
  return [whole, half];
}

function lastIsHalf(list: readonly Json[]): boolean {
  const last = list.at(-1) ?? null;
  return isObject(last) && [...piecedMembers].some((name) => isHalf(last[name] ?? null));
}

function isHalf(value: Json): boolean {
  return typeof value === "string" && endsInHalf(value);
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

function isText(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "";
}
