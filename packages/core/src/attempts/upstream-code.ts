/** Provider errors that clients react to. */
export type UpstreamCode =
  | "context_length_exceeded"
  | "content_filter"
  | "rate_limit_exceeded"
  | "overloaded";

/** The codes and types that providers use, in lower case. */
const spellings: ReadonlyMap<string, UpstreamCode> = new Map([
  ["context_length_exceeded", "context_length_exceeded"],
  ["context_window_exceeded", "context_length_exceeded"],
  ["exceed_context_size_error", "context_length_exceeded"],
  ["model_context_window_exceeded", "context_length_exceeded"],
  ["content_filter", "content_filter"],
  ["content_policy_violation", "content_filter"],
  ["data_inspection_failed", "content_filter"],
  ["moderation_blocked", "content_filter"],
  ["responsibleaipolicyviolation", "content_filter"],
  ["rate_limit_exceeded", "rate_limit_exceeded"],
  ["rate_limit_error", "rate_limit_exceeded"],
  ["rate_limit_reached_error", "rate_limit_exceeded"],
  ["too_many_requests", "rate_limit_exceeded"],
  ["resource_exhausted", "rate_limit_exceeded"],
  ["throttlingexception", "rate_limit_exceeded"],
  ["overloaded", "overloaded"],
  ["overloaded_error", "overloaded"],
  ["engine_overloaded", "overloaded"],
  ["engine_overloaded_error", "overloaded"],
  ["server_overloaded", "overloaded"],
  ["slow_down", "overloaded"],
]);

/** Phrases for a request that is too long, from providers without a code for it. In lower case. */
const tooLong: readonly string[] = [
  "maximum context length",
  "maximum prompt length",
  "maximum number of tokens",
  "prompt is too long",
  "input is too long for requested model",
  "context window",
  "context limit",
  "available context size",
  "too many tokens",
  "reduce the length of the messages",
];

const maxTextLength = 4_096;

/**
 * Classifies a provider's error by its codes and types, otherwise by its text; null if clients don't react to it. The text
 * belongs to the provider: it is only searched, never passed on.
 */
export function upstreamCode(codes: readonly unknown[], text: unknown): UpstreamCode | null {
  for (const code of codes) {
    const known = typeof code === "string" ? spellings.get(code.toLowerCase()) : undefined;
    if (known) return known;
  }
  if (typeof text !== "string") return null;
  const said = text.slice(0, maxTextLength).toLowerCase();
  return tooLong.some((words) => said.includes(words)) ? "context_length_exceeded" : null;
}
