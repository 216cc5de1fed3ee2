/**
 * Names of OpenTelemetry's conventions for generative AI. They are in development and not in an npm package, so this file
 * pins those of open-telemetry/semantic-conventions-genai at 024a4f944a1291fcb627c9c47da69e79868dd15e.
 */
export const gen = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  conversation: "gen_ai.conversation.id",
  requestModel: "gen_ai.request.model",
  requestStream: "gen_ai.request.stream",
  responseModel: "gen_ai.response.model",
  responseFinishReasons: "gen_ai.response.finish_reasons",
  responseTimeToFirstChunk: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheWriteTokens: "gen_ai.usage.cache_write.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
  modality: "gen_ai.token.modality",
  duration: "gen_ai.client.inference.duration",
  timeToFirstChunk: "gen_ai.client.inference.time_to_first_chunk",
  usage: "gen_ai.client.inference.usage",
} as const;

/** Names of the stable conventions. */
export const stable = {
  errorType: "error.type",
  serverAddress: "server.address",
  serverPort: "server.port",
} as const;

/** Tollgate's own attributes. */
export const own = {
  stepId: "tollgate.step.id",
  decisionId: "tollgate.decision.id",
  organizationId: "tollgate.organization.id",
  keyId: "tollgate.key.id",
  requestId: "tollgate.request.id",
  endpoint: "tollgate.endpoint",
  handler: "tollgate.handler",
  dataClass: "tollgate.data_class",
  source: "tollgate.source",
  outcome: "tollgate.outcome",
  reason: "tollgate.reason",
  attempts: "tollgate.attempts",
  attempt: "tollgate.attempt",
  rules: "tollgate.rules",
  costNanoUsd: "tollgate.cost_nano_usd",
  usageBasis: "tollgate.usage_basis",
} as const;
