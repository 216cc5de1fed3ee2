import { chatCompletion } from "./chat-completions/schema.ts";
import { type Form, formOf } from "./read.ts";
import { responseRequest } from "./responses/schema.ts";

/**
 * Returns the JSON Schema (draft 2020-12) of what `POST /v1/chat/completions` takes, written from the tables that its
 * reader goes by, under the default limits. It takes everything that the gateway takes; rules between members, lengths in
 * bytes, addresses of images and JSON Schemas of tools are the gateway's alone.
 */
export function chatCompletionsRequestSchema(): Form {
  return { $schema: draft, title: "POST /v1/chat/completions", ...formOf(chatCompletion) };
}

/** Returns the same of `POST /v1/responses`. */
export function responsesRequestSchema(): Form {
  return { $schema: draft, title: "POST /v1/responses", ...formOf(responseRequest) };
}

const draft = "https://json-schema.org/draft/2020-12/schema";
