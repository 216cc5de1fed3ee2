import {
  type AssistantMessage,
  createArgumentsReader,
  type ImagePart,
  type Json,
  type Message,
  type ProviderState,
  type RefusalPart,
  type StateFields,
  type TextPart,
  type ToolCall,
  type ToolMessage,
} from "@tollgate/core/provider";
import { isList, isObject, type JsonObject } from "@tollgate/provider-http";
import { rejected } from "./rejected.ts";

/** A message as the Messages API takes it, with its blocks as JSON texts. */
interface Turn {
  readonly role: "user" | "assistant" | "system";
  /** They come before everything else of a user's turn. */
  readonly results: string[];
  readonly blocks: string[];
  /** The content of a turn that is one plain text. */
  plain: string | null;
}

/** Where instructions go that follow other messages: to the system prompt, or where they are. */
export type LaterInstructions = "moved" | "kept";

/** Writes a conversation as the elements of the list `messages`. Messages of one role that follow each other become one. */
export function turnElements(messages: readonly Message[], later: LaterInstructions): string {
  const turns: Turn[] = [];
  const readArguments = createArgumentsReader();
  for (const message of messages) {
    const role = roleOf(message, later);
    if (role === null || (role === "system" && turns.length === 0)) continue;
    const last = turns.at(-1);
    const turn: Turn =
      last?.role === role ? last : { role, results: [], blocks: [], plain: plainOf(message) };
    if (turn === last) turn.plain = null;
    else turns.push(turn);
    if (message.role === "tool") turn.results.push(toolResult(message));
    else turn.blocks.push(...blocksOf(message, readArguments));
  }
  return turns
    .map(({ role, results, blocks, plain }) => {
      const content =
        plain === null ? `[${[...results, ...blocks].join(",")}]` : JSON.stringify(plain);
      return `{"role":"${role}","content":${content}}`;
    })
    .join(",");
}

/** Whether the elements of a conversation are those of its first `count` messages and those of the rest. */
export function isDivisible(
  messages: readonly Message[],
  count: number,
  later: LaterInstructions,
): boolean {
  const roles = messages.map((message) => roleOf(message, later));
  const before = roles.slice(0, count).findLast((role) => role !== null);
  const after = roles.slice(count).find((role) => role !== null);
  // Instructions at the beginning of the rest would be taken for those of the system prompt.
  return after !== "system" && (before === undefined || after === undefined || before !== after);
}

/** Instructions for the system prompt: all that aren't written as a turn. */
export function leadingOrMoved(
  messages: readonly Message[],
  later: LaterInstructions,
): readonly Message[] {
  const first = messages.findIndex((message) => roleOf(message, "moved") !== null);
  return later === "moved" || first === -1 ? messages : messages.slice(0, first);
}

/** The role of a message's turn. Null for instructions that have a separate place, and for a message without content. */
function roleOf(message: Message, later: LaterInstructions): Turn["role"] | null {
  switch (message.role) {
    case "system":
    case "developer":
      return later === "kept" && hasContent(message.content) ? "system" : null;
    case "tool":
      return "user";
    case "user":
      return hasContent(message.content) ? "user" : null;
    case "assistant": {
      const { content, refusal, tool_calls = [] } = message;
      const isAnswer = [content, refusal].some((said) => hasContent(said ?? ""));
      return isAnswer || tool_calls.length > 0 ? "assistant" : null;
    }
  }
}

type Part = TextPart | ImagePart | RefusalPart;

function hasContent(content: string | readonly Part[]): boolean {
  return partsOf(content).length > 0;
}

/** The API rejects texts that are empty or only white space. */
function isSaid(item: Part | ToolCall): boolean {
  if (item.type !== "text" && item.type !== "refusal") return true;
  return (item.type === "text" ? item.text : item.refusal).trim() !== "";
}

function plainOf(message: Message): string | null {
  if (message.role === "tool") return null;
  const { content, state } = message;
  const isAlone =
    message.role !== "assistant" || !(message.refusal || (message.tool_calls ?? []).length > 0);
  return typeof content === "string" && state === undefined && isAlone ? content : null;
}

type ReadArguments = ReturnType<typeof createArgumentsReader>;

function blocksOf(
  message: Exclude<Message, ToolMessage>,
  readArguments: ReadArguments,
): readonly string[] {
  if (message.role === "assistant") return assistantBlocks(message, readArguments);
  return marked(partsOf(message.content), message.state).map(contentBlock);
}

function assistantBlocks(
  message: AssistantMessage,
  readArguments: ReadArguments,
): readonly string[] {
  const { content, refusal, tool_calls = [], state } = message;
  const answer = [...listOf(content ?? ""), ...listOf(refusal ?? ""), ...tool_calls];
  const said = marked<Part | ToolCall>(answer.filter(isSaid), state).values();
  const blocks = answer.map((given) => {
    const item = isSaid(given) ? said.next().value : undefined;
    if (item === undefined) return null;
    return item.type === "function" ? toolUse(item, readArguments) : contentBlock(item);
  });
  return withThinking(blocks, state?.fields ?? {});
}

/**
 * Puts each thinking block back in its place: after as many other blocks as came before it. Null is a block that is left
 * out.
 */
function withThinking(said: readonly (string | null)[], fields: StateFields): readonly string[] {
  const { thinking_blocks: given } = fields;
  const thoughts = given !== undefined && isList(given) ? given.flatMap(thinkingBlock) : [];
  const blocks: (string | null)[] = [];
  let next = 0;
  for (const block of said) {
    for (; (thoughts[next]?.place ?? Number.POSITIVE_INFINITY) <= blocks.length; next++)
      blocks.push(thoughts[next]?.block ?? null);
    blocks.push(block);
  }
  const rest = thoughts.slice(next).map(({ block }) => block);
  return [...blocks.filter((block) => block !== null), ...rest];
}

interface PlacedBlock {
  readonly place: number;
  readonly block: string;
}

/** The API rejects thinking without its signature. */
function thinkingBlock(entry: Json): PlacedBlock[] {
  if (!isObject(entry)) return [];
  const { type, index, thinking = "", signature, data } = entry;
  const place = typeof index === "number" ? index : 0;
  if (type === "thinking" && typeof signature === "string" && signature !== "")
    return [{ place, block: JSON.stringify({ type, thinking, signature }) }];
  if (type === "redacted_thinking" && typeof data === "string")
    return [{ place, block: JSON.stringify({ type, data }) }];
  return [];
}

/** Content as a list of parts, without texts that the API rejects. */
export function partsOf<Given extends Part>(
  content: string | readonly Given[],
): readonly (Given | TextPart)[] {
  return listOf(content).filter(isSaid);
}

function listOf<Given extends Part>(
  content: string | readonly Given[],
): readonly (Given | TextPart)[] {
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}

/** Writes a part as a block. */
export function contentBlock(part: Part): string {
  const mark = breakpointOf(part.state);
  if (part.type === "image_url")
    return JSON.stringify({ type: "image", source: imageSource(part), ...mark });
  const text = part.type === "text" ? part.text : part.refusal;
  return JSON.stringify({ type: "text", text, ...mark });
}

const base64Image = /^data:(image\/[a-z0-9.+-]{1,64});base64,/i;
/** Clients name JPEG images by either, but the API takes only its registered name. */
const jpg = /^image\/jpg$/;

/** The gateway doesn't fetch images. If the upstream can't either, it rejects the request. */
function imageSource({ image_url: { url } }: ImagePart): object {
  const [start, mediaType] = base64Image.exec(url) ?? [];
  if (start !== undefined && mediaType !== undefined)
    return {
      type: "base64",
      media_type: mediaType.toLowerCase().replace(jpg, "image/jpeg"),
      data: url.slice(start.length),
    };
  if (/^https?:/i.test(url) && URL.canParse(url)) return { type: "url", url };
  throw rejected("An image must be an http URL or a data URL in base64.", "messages");
}

/** The arguments are kept byte for byte: reading a number and writing it again could change its digits. */
function toolUse(
  { id, function: { name, arguments: given }, state }: ToolCall,
  readArguments: ReadArguments,
): string {
  const head = JSON.stringify({ type: "tool_use", id: toolId(id), name });
  const mark = JSON.stringify(breakpointOf(state));
  const tail = mark === "{}" ? "}" : `,${mark.slice(1)}`;
  return `${head.slice(0, -1)},"input":${inputText(given, readArguments)}${tail}`;
}

/** The API takes an object only. A model of another vendor may have written anything else. */
function inputText(given: string, readArguments: ReadArguments): string {
  if (given === "") return "{}";
  const value = readArguments(given);
  if (value !== undefined && isObject(value)) return given;
  return JSON.stringify({ arguments: value === undefined ? given : value });
}

/** The API takes letters, digits, `_` and `-` only. Ids of other vendors have further characters. */
function toolId(id: string): string {
  return id.replaceAll(/[^a-zA-Z0-9_-]/g, "_") || "_";
}

function toolResult({ tool_call_id, content, is_error, state }: ToolMessage): string {
  const written =
    typeof content === "string"
      ? JSON.stringify(content)
      : `[${partsOf(content).map(contentBlock).join(",")}]`;
  const head = JSON.stringify({ type: "tool_result", tool_use_id: toolId(tool_call_id) });
  const tail = JSON.stringify({ ...(is_error ? { is_error } : {}), ...breakpointOf(state) });
  const middle = written === "[]" ? "" : `,"content":${written}`;
  return `${head.slice(0, -1)}${middle}${tail === "{}" ? "}" : `,${tail.slice(1)}`}`;
}

/** The client's cache breakpoint, as a member of a block. */
export function breakpointOf(state: ProviderState | undefined): JsonObject {
  const mark = state?.fields["cache_control"];
  return mark === undefined ? {} : { cache_control: mark };
}

/** Puts the breakpoint of a whole message on its last part, unless that has its own. */
export function marked<Item extends { readonly state?: ProviderState }>(
  items: readonly Item[],
  state: ProviderState | undefined,
): readonly Item[] {
  const mark = breakpointOf(state);
  const last = items.at(-1);
  if (last === undefined || mark["cache_control"] === undefined) return items;
  const fields = { ...mark, ...last.state?.fields };
  return [...items.slice(0, -1), { ...last, state: { from: null, fields } }];
}
