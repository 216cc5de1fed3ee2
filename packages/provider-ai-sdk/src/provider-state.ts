import type {
  JSONObject,
  SharedV4ProviderMetadata,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import type { AssistantMessage, ProviderState, StateFields } from "@tollgate/core/provider";
import { isObject } from "./json-object.ts";

/** Metadata of a part, which the AI SDK's providers expect back with it. */
export type Metadata = SharedV4ProviderMetadata;

/** A block of an answer's reasoning, while it is assembled. */
export interface ReasoningBlock {
  text: string;
  metadata: Metadata | undefined;
}

/** Merges new metadata of a part into the known metadata. It arrives in pieces. */
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
 * Returns a reasoning block as an entry of `reasoning_details`. Clients can read its text. `data` contains the metadata
 * as JSON and is only for the provider.
 */
export function reasoningFields(index: number, { text, metadata }: ReasoningBlock): StateFields {
  const data = metadata === undefined ? {} : { data: JSON.stringify(metadata) };
  const entry =
    text === ""
      ? { type: "reasoning.encrypted", index, ...data }
      : { type: "reasoning.text", index, text, ...data };
  return { reasoning_details: [entry] };
}

/** Returns the metadata of a tool call as `extra_content`. A Gemini signature gets the name that clients know. */
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

/** Whether the metadata of a text must be sent back with it. */
export function isSigned(metadata: Metadata | undefined): metadata is Metadata {
  return Object.values(metadata ?? {}).some(
    ({ thoughtSignature }) => typeof thoughtSignature === "string",
  );
}

/** Returns the reasoning of an earlier answer, in order. */
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

/** Provider options of a message or of one of its parts. */
export interface PartOptions {
  providerOptions?: SharedV4ProviderOptions;
}

/** Returns the options of a tool call or part: its metadata and its cache breakpoint. */
export function optionsOf(state: ProviderState | undefined): PartOptions {
  return partOptions(joinMetadata(metadataOf(state), breakpointOf(state)));
}

/** Returns the cache breakpoint that the client set. */
export function breakpointOptions(state: ProviderState | undefined): PartOptions {
  return partOptions(breakpointOf(state));
}

/** Returns only the metadata of a text. */
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
  if (!isObject(cacheControl)) return undefined;
  const { ttl } = cacheControl;
  const cachePoint = { type: "default", ...(typeof ttl === "string" && { ttl }) };
  return { anthropic: { cacheControl }, bedrock: { cachePoint } };
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

/** Parses metadata from JSON. Undefined if it is invalid. */
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
