import type { Clock } from "@tollgate/core/provider";
import {
  billingSchema,
  modelOptions,
  type ReadResult,
  type Schema,
  stateOptions,
  text,
  tryRead,
  z,
} from "@tollgate/core/schemas";
import type { OpenaiCompatibleOptions } from "./options.ts";

const url =
  /^https?:\/\/(?:\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9.-]{1,253})(?::\d{1,5})?(?:\/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*$/;
const headerName = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const headerValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** Headers that the provider sets itself, or that would change the framing or target of the request. */
const reserved =
  /^(?:authorization|content-.*|accept|accept-encoding|host|connection|keep-alive|transfer-encoding|upgrade|expect|te|trailer|cookie|proxy-.*)$/;

/** Reads a base URL strictly: only a scheme, a host and a path, so all parsers agree on it. */
export function parseBaseUrl(
  text: unknown,
): { readonly origin: string; readonly host: string; readonly path: string } | null {
  if (typeof text !== "string" || !url.test(text) || !URL.canParse(text)) return null;
  const { origin, host, pathname } = new URL(text);
  return { origin, host, path: withoutLastSlashes(pathname) };
}

function withoutLastSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === "/") end--;
  return path.slice(0, end);
}

/** Whether a credential can be sent in a header. */
export function isCredential(value: unknown): value is string {
  return typeof value === "string" && value.length <= 8_192 && headerValue.test(value);
}

const credentialRule = "must be visible ASCII characters, a function or null";

const credential: Schema<NonNullable<OpenaiCompatibleOptions["apiKey"]> | null> = z.union(
  [
    z.null(),
    z.custom<() => string | Promise<string>>((value) => typeof value === "function"),
    text(isCredential, credentialRule),
  ],
  { error: credentialRule },
);

const header = z.string().check(
  z.refine((name) => headerName.test(name.toLowerCase()), { error: "is not a header name" }),
  z.refine((name) => !reserved.test(name.toLowerCase()), { error: "cannot be set" }),
);

const headerText = text((value) => headerValue.test(value), "must be visible ASCII characters");

function isObject({ value }: { readonly value: unknown }): boolean {
  return typeof value === "object" && value !== null;
}

/** A rule that depends on the connection. It is checked even if single members are invalid. */
function forConnection(
  path: "apiKey" | "listModels",
  error: string,
  test: (options: Partial<OpenaiCompatibleOptions>) => boolean,
) {
  return z.refine<OpenaiCompatibleOptions>(test, { error, path: [path], when: isObject });
}

/** The schema of the options of `openaiCompatible`. Data can express all of them, except a function for `apiKey` and `clock`. */
export const openaiCompatibleSchema: Schema<OpenaiCompatibleOptions> = z
  .strictObject({
    ...modelOptions,
    ...stateOptions,
    baseURL: text(
      (url) => parseBaseUrl(url) !== null,
      "must be an http or https URL without user, query and fragment",
    ),
    apiKey: z.exactOptional(credential),
    connection: z.exactOptional(z.enum(["platform", "customer"])),
    listModels: z.exactOptional(z.boolean()),
    headers: z.exactOptional(z.record(header, headerText)),
    maxTokensField: z.exactOptional(z.enum(["max_completion_tokens", "max_tokens"])),
    developerRole: z.exactOptional(z.enum(["developer", "system"])),
    forwardStore: z.exactOptional(z.boolean()),
    billing: z.exactOptional(billingSchema),
    clock: z.exactOptional(
      z.custom<Clock>((value) => typeof value === "object" && value !== null, {
        error: "must be a clock",
      }),
    ),
  })
  .check(
    forConnection(
      "apiKey",
      "is undefined: pass a string, a function, or null for an upstream without keys",
      ({ connection, apiKey }) => connection === "customer" || apiKey !== undefined,
    ),
    forConnection(
      "apiKey",
      "must not be set on a customer-owned connection: Tollgate sends the organization's own credential",
      ({ connection, apiKey }) => connection !== "customer" || apiKey == null,
    ),
    forConnection(
      "listModels",
      "requires the platform's credential, which a customer-owned connection doesn't have",
      ({ connection, listModels }) => connection !== "customer" || listModels !== true,
    ),
  );

/** Checks the options. Each problem is one sentence and contains no secret. */
export function readOptions(input: unknown): ReadResult<OpenaiCompatibleOptions> {
  return tryRead(openaiCompatibleSchema, input, { noun: "option", passThrough: ["clock"] });
}
