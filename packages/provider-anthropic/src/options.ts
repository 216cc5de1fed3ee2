import { type ReadResult, type Schema, text, tryRead, z } from "@tollgate/core/schemas";
import { baseUrlSchema, type HttpOptions, httpOptions, httpRules } from "@tollgate/provider-http";

/** How Anthropic's Messages API is reached. */
export interface AnthropicProviderOptions extends HttpOptions {
  /** The URL above `/messages`: http or https, without user, query or fragment. Default `https://api.anthropic.com/v1`. */
  readonly baseURL?: string;
  /** The value of the `anthropic-version` header. Default `2023-06-01`. */
  readonly version?: string;
  /** Names for the `anthropic-beta` header of every call. Names that a request asks for come after them. Default: none. */
  readonly betas?: readonly string[];
  /**
   * How a model is asked to think if a request has only a reasoning effort. `adaptive` sends the effort and lets the model
   * choose. `budget` sends a share of the output cap as its thinking budget, for older models. Default: `budget` for the
   * known names of models up to Claude 4.5, otherwise `adaptive`.
   */
  readonly thinking?: "adaptive" | "budget";
}

/** Headers that the provider sets itself. */
const ownHeaders = ["x-api-key", "anthropic-version", "anthropic-beta"];

const version = /^\d{4}-\d{2}-\d{2}$/;
const beta = /^[a-z0-9][a-z0-9.-]{0,63}$/;

/** The schema of the options of `anthropic`. Data can express all of them, except a function for `apiKey` and `clock`. */
export const anthropicSchema: Schema<AnthropicProviderOptions> = z
  .strictObject({
    ...httpOptions(ownHeaders),
    baseURL: z.exactOptional(baseUrlSchema),
    version: z.exactOptional(
      text((value) => version.test(value), "must be a date like 2023-06-01"),
    ),
    betas: z.exactOptional(
      z.array(text((value) => beta.test(value), "must be the name of a beta in lower case")),
    ),
    thinking: z.exactOptional(z.enum(["adaptive", "budget"])),
  })
  .check(...httpRules);

/** Checks the options. Each problem is one sentence and contains no secret. */
export function readOptions(input: unknown): ReadResult<AnthropicProviderOptions> {
  return tryRead(anthropicSchema, input, { noun: "option", passThrough: ["clock"] });
}
