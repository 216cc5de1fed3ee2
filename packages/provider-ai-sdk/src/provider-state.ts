import type {
  JSONObject,
  SharedV4ProviderMetadata,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import type { AssistantMessage, Json, ProviderState, StateFields } from "@tollgate/core/provider";

/** What the AI SDK's providers say next to a part, and want back with it. */
export type Metadata = SharedV4ProviderMetadata;

/** A part of an answer's reasoning, as it is put together. */
export interface ReasoningBlock {
  text: string;
  metadata: Metadata | undefined;
}

/** What is new of a part's metadata, next to what was known: pieces bring members one after the other. */
export function joinMetadata(
  known: Metadata | undefined,
  more: Metadata | undefined,
): Metadata | undefined {
  if (known === undefined || more === undefined) return known ?? more;
  const joined: Metadata = { ...known };
  for (const [vendor, members] of Object.entries(more))
    joined[vendor] = { ...joined[vendor], ...members };
  return joined;
}

/**
 * A thought as an entry of `reasoning_details`. Its text can be read; `data`, in which the metadata is JSON, is nobody's
 * but the provider's.
 */
export function reasoningFields(index: number, { text, metadata }: ReasoningBlock): StateFields {
  const data = metadata === undefined ? {} : { data: JSON.stringify(metadata) };
  const entry =
    text === ""
      ? { type: "reasoning.encrypted", index, ...data }
      : { type: "reasoning.text", index, text, ...data };
  return { reasoning_details: [entry] };
}

/** The metadata of a tool call as `extra_content`; a signature of Gemini's has the name that clients know. */
export function extraContent(metadata: Metadata): StateFields {
  const [first, ...others] = Object.entries(metadata);
  const { thoughtSignature, ...rest } = first?.[1] ?? {};
  if (
    first !== undefined &&
    others.length === 0 &&
    typeof thoughtSignature === "string" &&
    Object.keys(rest).length === 0
  )
    return { extra_content: { [first[0]]: { thought_signature: thoughtSignature } } };
  return { extra_content: { provider_metadata: JSON.stringify(metadata) } };
}

/** Whether a text's metadata has to come back with it. */
export function isSigned(metadata: Metadata | undefined): metadata is Metadata {
  return Object.values(metadata ?? {}).some(
    ({ thoughtSignature }) => typeof thoughtSignature === "string",
  );
}

/** The reasoning of a former answer, in order. */
export function reasoningBlocks({ state }: AssistantMessage): readonly ReasoningBlock[] {
  const { reasoning_details, reasoning_content, reasoning } = state?.fields ?? {};
  if (Array.isArray(reasoning_details)) return reasoning_details.flatMap(reasoningBlock);
  const text = reasoning_content ?? reasoning;
  return typeof text === "string" && text !== "" ? [{ text, metadata: undefined }] : [];
}

function reasoningBlock(entry: unknown): ReasoningBlock[] {
  if (!isObject(entry)) return [];
  const { text = "", data } = entry;
  const metadata = typeof data === "string" ? parsed(data) : undefined;
  return typeof text === "string" && (text !== "" || metadata !== undefined)
    ? [{ text, metadata }]
    : [];
}

/** What a provider reads next to a message or a part of it. */
export interface PartOptions {
  providerOptions?: SharedV4ProviderOptions;
}

/** What goes back with a tool call or a part: its metadata, and where the client wants the provider's cache to end. */
export function optionsOf(state: ProviderState | undefined): PartOptions {
  return partOptions(joinMetadata(metadataOf(state), breakpointOf(state)));
}

/** Where the client wants the provider's cache to end. */
export function breakpointOptions(state: ProviderState | undefined): PartOptions {
  return partOptions(breakpointOf(state));
}

/** The metadata of a text, without more. */
export function metadataOptions(state: ProviderState | undefined): PartOptions {
  return partOptions(metadataOf(state));
}

function partOptions(providerOptions: SharedV4ProviderOptions | undefined): PartOptions {
  return providerOptions === undefined ? {} : { providerOptions };
}

function metadataOf(state: ProviderState | undefined): SharedV4ProviderOptions | undefined {
  const extra = state?.fields["extra_content"];
  return isObject(extra) ? ofExtraContent(extra) : undefined;
}

function breakpointOf(state: ProviderState | undefined): SharedV4ProviderOptions | undefined {
  const cacheControl = state?.fields["cache_control"];
  return isObject(cacheControl) ? { anthropic: { cacheControl } } : undefined;
}

function ofExtraContent(extra: JSONObject): SharedV4ProviderOptions | undefined {
  const { provider_metadata, ...vendors } = extra;
  if (typeof provider_metadata === "string") return parsed(provider_metadata);
  const signed = Object.entries(vendors).flatMap(([vendor, members]) => {
    const signature = isObject(members) ? members["thought_signature"] : undefined;
    return typeof signature === "string" ? [[vendor, { thoughtSignature: signature }]] : [];
  });
  return signed.length === 0 ? undefined : Object.fromEntries(signed);
}

/** Metadata that was JSON; none where it is something else. */
function parsed(data: string): SharedV4ProviderOptions | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isMetadata(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isMetadata(value: unknown): value is Metadata {
  return isObject(value) && Object.values(value).every(isObject);
}

function isObject(value: Json | undefined | unknown): value is JSONObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
