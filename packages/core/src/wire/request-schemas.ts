import { chatCompletion } from "./chat-completions/schema.ts";
import { type BodySchema, schemaOf } from "./read.ts";
import { responseRequest } from "./responses/schema.ts";

/**
 * Returns the JSON Schema (draft 2020-12) of the body of `POST /v1/chat/completions`, generated from the tables that
 * Tollgate parses it with, under the default limits. It accepts everything that the gateway accepts. Only the gateway
 * checks rules between members, lengths in bytes, addresses of images, and JSON Schemas of tools.
 */
export function chatCompletionsRequestSchema(): BodySchema {
  return { $schema: draft, title: "POST /v1/chat/completions", ...schemaOf(chatCompletion) };
}

/** Returns the same for `POST /v1/responses`. */
export function responsesRequestSchema(): BodySchema {
  return { $schema: draft, title: "POST /v1/responses", ...schemaOf(responseRequest) };
}

const draft = "https://json-schema.org/draft/2020-12/schema";
