import type { CompletionRequest } from "../domain/completion-request.ts";
import { anyObject, ignored, optional, renamed } from "./fields.ts";
import { mapOf } from "./lists.ts";
import { mapped, type Reader } from "./read.ts";
import { number, oneOf, shortText, text, uuid } from "./scalars.ts";

/** The Session and the Turn that a request names (section 2.8). */
export const sessionFields = {
  session_id: renamed("sessionId", optional(uuid)),
  turn_id: renamed("turnId", optional(uuid)),
};

/** The sampling controls that both protocols have. */
export const samplingFields = {
  temperature: optional(number(0, 2)),
  top_p: renamed("topP", optional(number(0, 1))),
  frequency_penalty: renamed("frequencyPenalty", optional(number(-2, 2))),
  presence_penalty: renamed("presencePenalty", optional(number(-2, 2))),
};

export const verbosity = oneOf("low", "medium", "high");

/** The service tiers that a client can request. `auto` is the same as omitting the member. */
export function serviceTier(...tiers: readonly string[]): Reader<string | undefined> {
  return mapped(oneOf(...tiers), (tier) => (tier === "auto" ? undefined : tier));
}

export const chatTiers = ["auto", "default", "flex", "scale", "priority", "fast"];

/** Members of both protocols that describe the request. The model doesn't get them. */
export const labelFields = {
  user: optional(text),
  metadata: optional(mapOf(shortText(512, 0), { maxMembers: 16, maxKeyLength: 64 })),
  prompt_cache_key: renamed("promptCacheKey", optional(text)),
  safety_identifier: renamed("safetyIdentifier", optional(shortText(64))),
  prompt_cache_retention: ignored(text),
  prompt_cache_options: ignored(anyObject),
};

/** Members that a request to a model has. A member that no request has is `never`. */
type RequestMembers<Given> = {
  readonly [Name in keyof Given]: Name extends keyof CompletionRequest ? Given[Name] : never;
};

/** Returns the members unchanged. A field that is read but isn't part of the request doesn't compile. */
export function requestMembers<const Given extends RequestMembers<Given>>(given: Given): Given {
  return given;
}
