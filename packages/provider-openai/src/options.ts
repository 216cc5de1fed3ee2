import { type ReadResult, type Schema, tryRead, z } from "@tollgate/core/schemas";
import { baseUrlSchema, type HttpOptions, httpOptions, httpRules } from "@tollgate/provider-http";
import type { RequestDialect } from "./request-body.ts";

/** How an OpenAI-compatible upstream is reached. */
export interface OpenaiCompatibleOptions extends HttpOptions {
  /** The URL above `/chat/completions`, such as `https://api.example.com/v1`: http or https, without user, query or fragment. */
  readonly baseURL: string;
  /** The request field for the output limit. Default `max_completion_tokens`. */
  readonly maxTokensField?: RequestDialect["maxTokensField"];
  /** The role for `developer` messages. Default `developer`. */
  readonly developerRole?: RequestDialect["developerRole"];
  /** Whether to send the request's `store` and `metadata` to the upstream. Default false: the gateway keeps transcripts itself. */
  readonly forwardStore?: boolean;
}

/** The schema of the options of `openaiCompatible`. Data can express all of them, except a function for `apiKey` and `clock`. */
export const openaiCompatibleSchema: Schema<OpenaiCompatibleOptions> = z
  .strictObject({
    ...httpOptions(),
    baseURL: baseUrlSchema,
    maxTokensField: z.exactOptional(z.enum(["max_completion_tokens", "max_tokens"])),
    developerRole: z.exactOptional(z.enum(["developer", "system"])),
    forwardStore: z.exactOptional(z.boolean()),
  })
  .check(...httpRules);

/** Checks the options. Each problem is one sentence and contains no secret. */
export function readOptions(input: unknown): ReadResult<OpenaiCompatibleOptions> {
  return tryRead(openaiCompatibleSchema, input, { noun: "option", passThrough: ["clock"] });
}
