import { hash } from "node:crypto";
import {
  type CompletionEvent,
  isShallow,
  isTooMuchJson,
  type Json,
  type StateFields,
} from "@tollgate/core/provider";
import {
  invalidAnswer,
  invalidEvent,
  isObject,
  itemsOf,
  membersOf,
  textOf,
} from "@tollgate/provider-http";
import { callState } from "./provider-state.ts";

// Every call is kept until the answer ends, and an upstream could begin any number of them.
const maxCalls = 4_096;
// No tool takes deeper values, and serializing them would overflow the stack.
const maxDepth = 64;

interface Call {
  readonly index: number;
  /** The upstream's id, or a generated one if the call started without; null before. */
  id: string | null;
  ownId: boolean;
  name: string | null;
  /** All arguments so far. Those that arrived before the name are also in `held`. */
  arguments: string;
  /** Its arguments began with a whole object. */
  isWhole: boolean;
  held: string;
  /** State that arrived before the name. */
  heldState: StateFields | null;
}

interface Fragment {
  readonly id: string | null;
  readonly name: string | null;
  readonly part: string;
}

/** Assembles tool calls from the fragments of the different dialects. */
export interface ToolCalls {
  /** `exact` returns the same fragments with all digits of their numbers. */
  add(fragments: Json | undefined, into: CompletionEvent[], exact?: () => Json | undefined): void;
  /** Checks at the end that every call has a name. */
  finish(): void;
}

/** `seed` is unique to this answer. Ids for calls without an id are derived from it. */
export function createToolCalls(seed: string): ToolCalls {
  const calls: Call[] = [];
  // Some upstreams reuse an index for a second call: the last call counts.
  const byIndex = new Map<number, Call>();
  // The first call of each id.
  const byId = new Map<string, Call>();

  const identify = (call: Call, id: string): void => {
    Object.assign(call, { id, ownId: true });
    if (!byId.has(id)) byId.set(id, call);
  };
  const open = (id: string | null): Call => {
    const { length: index } = calls;
    if (index === maxCalls)
      throw invalidAnswer("too_many_values", "The provider's answer has too many tool calls.");
    const call = {
      index,
      id: null,
      ownId: false,
      name: null,
      arguments: "",
      isWhole: false,
      held: "",
      heldState: null,
    };
    calls.push(call);
    if (id !== null) identify(call, id);
    return call;
  };
  const withIndex = (index: number, fragment: Fragment, inList: ReadonlySet<Call>): Call => {
    const known = byIndex.get(index);
    if (known && !isAnother(known, fragment, inList)) return known;
    const call = open(fragment.id);
    byIndex.set(index, call);
    return call;
  };
  const withoutIndex = (
    position: number | null,
    fragment: Fragment,
    inList: ReadonlySet<Call>,
  ): Call => {
    const { id, name } = fragment;
    const known = id === null ? undefined : byId.get(id);
    if (known) return known;
    const last = position === null ? calls.at(-1) : calls[position];
    if (!last) return open(id);
    const continues = id === null || (!last.ownId && name === null);
    return continues && !isAnother(last, fragment, inList) ? last : open(id);
  };

  return {
    add(fragments, into, exact = noExact) {
      const list = itemsOf(fragments);
      const inList = new Set<Call>();
      list.forEach((fragment, place) => {
        if (!isObject(fragment)) throw invalidEvent("The provider sent an invalid tool call.");
        const { index, id: anyId, function: called } = fragment;
        const { name: anyName, arguments: written } = membersOf(called);
        const part = argumentsOf(written, () => exactPart(exact(), place));
        const [id, name] = [textOf(anyId), textOf(anyName)];
        const call =
          typeof index === "number" && Number.isSafeInteger(index) && index >= 0
            ? withIndex(index, { id, name, part }, inList)
            : withoutIndex(list.length > 1 ? place : null, { id, name, part }, inList);
        inList.add(call);
        if (id !== null && call.id === null) identify(call, id);
        append(call, { name, part, state: callState(fragment) }, seed, into);
      });
    },
    finish() {
      if (calls.some((call) => call.name === null))
        throw invalidEvent("The provider sent a tool call without a name.");
    },
  };
}

/** Whether a fragment begins another call, although its index or place is that of this call. */
function isAnother(call: Call, { id, name, part }: Fragment, inList: ReadonlySet<Call>): boolean {
  if (name === null) return false;
  if (id !== null && call.ownId) return id !== call.id;
  if (call.name !== null && call.name !== name) return true;
  // Complete JSON can't continue. An upstream may repeat it later, but not in the same list.
  return call.isWhole && part.trim() !== "" && (part !== call.arguments || inList.has(call));
}

function append(
  call: Call,
  {
    name,
    part,
    state,
  }: { readonly name: string | null; readonly part: string; readonly state: StateFields | null },
  seed: string,
  into: CompletionEvent[],
): void {
  // Some upstreams repeat the whole call at its end. Complete JSON can't continue, so an equal part is a repetition.
  const repeated = part === call.arguments && part.startsWith("{") && part.endsWith("}");
  const added = repeated ? "" : part;
  if (call.arguments === "") call.isWhole = isWholeObject(part);
  call.arguments += added;
  if (call.name === null && name === null) {
    call.held += added;
    call.heldState = state ?? call.heldState;
    return;
  }
  if (call.name === null && name !== null) {
    call.name = name;
    call.id ??= `call_${hash("sha256", `${seed}:${call.index}`).slice(0, 24)}`;
    into.push({ type: "tool-call-started", index: call.index, id: call.id, name });
  }
  const fields = state ?? call.heldState;
  call.heldState = null;
  if (fields !== null) into.push({ type: "state", index: call.index, fields });
  const written = call.held + added;
  call.held = "";
  if (written !== "") into.push({ type: "tool-call-delta", index: call.index, arguments: written });
}

function isWholeObject(text: string): boolean {
  if (!text.startsWith("{") || !text.endsWith("}") || isTooMuchJson(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const noExact = (): undefined => undefined;

/** The arguments of the call at a place. */
function exactPart(exact: Json | undefined, place: number): Json | undefined {
  return membersOf(membersOf(itemsOf(exact)[place])["function"])["arguments"];
}

/** Arguments are JSON text. Some upstreams send the parsed object instead. */
function argumentsOf(part: Json | undefined, exact: () => Json | undefined): string {
  if (typeof part === "string") return part;
  if (!isObject(part)) return "";
  if (!isShallow(part, maxDepth))
    throw invalidEvent("The provider sent tool arguments that are nested too deeply.");
  return JSON.stringify(exact() ?? part);
}
