import type { Usage } from "../../domain/usage.ts";

/** The usage object of section 2.4, before it is written as JSON. It contains only details that the provider reported. */
export function usageObject(usage: Usage): object {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.totalTokens,
    prompt_tokens_details: reported({
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: usage.cacheWriteTokens,
      audio_tokens: usage.audioInputTokens,
      image_tokens: usage.imageInputTokens,
    }),
    completion_tokens_details: reported({
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: usage.audioOutputTokens,
      image_tokens: usage.imageOutputTokens,
    }),
  };
}

/** The details. Undefined, which JSON omits, if none was reported. */
function reported(details: Readonly<Record<string, number | undefined>>): object | undefined {
  for (const name in details) if (details[name] !== undefined) return details;
  return undefined;
}
