import type { Usage } from "../../domain/usage.ts";

/** The usage object of section 2.4; each detail is present only when the provider reported it. */
export function usageObject(usage: Usage): object {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.totalTokens,
    ...detailsObject("prompt_tokens_details", {
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: usage.cacheWriteTokens,
      audio_tokens: usage.audioInputTokens,
      image_tokens: usage.imageInputTokens,
    }),
    ...detailsObject("completion_tokens_details", {
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: usage.audioOutputTokens,
      image_tokens: usage.imageOutputTokens,
    }),
  };
}

function detailsObject(
  name: string,
  details: Readonly<Record<string, number | undefined>>,
): object {
  const reported = Object.entries(details).filter(([, tokens]) => tokens !== undefined);
  return reported.length === 0 ? {} : { [name]: Object.fromEntries(reported) };
}
