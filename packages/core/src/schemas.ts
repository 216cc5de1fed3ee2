/** The schemas of Tollgate's input, and the same as JSON Schemas for editors and other languages. */
import type { EndpointName } from "./domain/step.ts";
import { chatCompletion } from "./wire/chat-completions/schema.ts";
import { embeddingsRequest } from "./wire/embeddings/schema.ts";
import { messagesRequest } from "./wire/messages/schema.ts";
import { type BodySchema, type Reader, schemaOf } from "./wire/read.ts";
import { responseRequest } from "./wire/responses/schema.ts";

export { administrationSchemas } from "./administration/schemas.ts";
export { budgetSchema } from "./budgets/schema.ts";
export type { Problem } from "./errors/gateway-error.ts";
export { type JsonSchema, jsonSchemaOf } from "./input/json-schema.ts";
export {
  type OptionalMember,
  pathOf,
  problemAt,
  type ReadOptions,
  type ReadResult,
  read,
  type Schema,
  tryRead,
} from "./input/read.ts";
export {
  connectionOwnership,
  duration,
  milliseconds,
  text,
  usd,
  wholeNumber,
} from "./input/values.ts";
export * as z from "./input/z.ts";
export { type GatewaySettings, gatewaySettings, gatewaySettingsSchema } from "./options-schema.ts";
export { rulePolicySchema } from "./policy/schema.ts";
export {
  billingSchema,
  modelOptions,
  priceTableSchema,
  stateOptions,
} from "./routing/model-schema.ts";
export { virtualModelsSchema } from "./routing/virtual.ts";

/**
 * Returns the JSON Schema (draft 2020-12) of the bodies of an endpoint, generated from the tables that Tollgate parses them
 * with, under the default limits. It accepts everything that the gateway accepts. Only the gateway checks rules between
 * members, lengths in bytes, addresses of images, and JSON Schemas of tools.
 */
export function requestSchema(endpoint: EndpointName): BodySchema {
  const { title, read } = bodies[endpoint];
  return { $schema: "https://json-schema.org/draft/2020-12/schema", title, ...schemaOf(read) };
}

const bodies: Readonly<
  Record<EndpointName, { readonly title: string; readonly read: Reader<unknown> }>
> = {
  chat_completions: { title: "POST /v1/chat/completions", read: chatCompletion },
  responses: { title: "POST /v1/responses", read: responseRequest },
  messages: { title: "POST /v1/messages", read: messagesRequest },
  embeddings: { title: "POST /v1/embeddings", read: embeddingsRequest },
};
