import type {
  Billing,
  Clock,
  ConnectionOwnership,
  ModelOptions,
  StateOptions,
} from "@tollgate/core/provider";
import {
  billingSchema,
  connectionOwnership,
  modelOptions,
  type Schema,
  stateOptions,
  text,
  z,
} from "@tollgate/core/schemas";

/** The options of every HTTP provider. A provider has further ones for its own protocol. */
export interface HttpOptions extends ModelOptions, StateOptions {
  /**
   * The platform's credential: a string, a function that Tollgate calls before every call, or null for an upstream
   * without keys. `undefined` is rejected: it usually means a missing environment variable. Omit it for customer connections.
   */
  readonly apiKey?: string | (() => string | Promise<string>) | null | undefined;
  /** Whose account pays. Default `platform`. `customer` sends each organization's own credential. */
  readonly connection?: ConnectionOwnership;
  /**
   * Whether `GET /v1/models` may show the upstream's own list if neither `models` nor the prices name any model. Tollgate
   * asks for it with the platform's credential, so customer connections don't support it. Default false.
   */
  readonly listModels?: boolean;
  /** Additional headers for every call. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Whether to send the attempt's `traceparent` header, so that an upstream of your own joins the trace. Default `none`: to
   * a third party, it links the calls of one user.
   */
  readonly trace?: "none" | "send";
  /** How calls are billed. Default: by the price table only. */
  readonly billing?: Billing;
  /** The source of time. Default: the machine's clock. */
  readonly clock?: Clock;
}

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

const credential: Schema<NonNullable<HttpOptions["apiKey"]> | null> = z.union(
  [
    z.literal(null),
    z.custom<() => string | Promise<string>>((value) => typeof value === "function"),
    text(isCredential, credentialRule),
  ],
  { error: credentialRule },
);

const headerText = text((value) => headerValue.test(value), "must be visible ASCII characters");

/** The schema of additional headers. `own` are the headers that the provider itself sets, in lower case. */
function headersSchema(own: readonly string[]) {
  const name = z.string().check(
    z.refine((header) => headerName.test(header.toLowerCase()), { error: "is not a header name" }),
    z.refine(
      (header) => !reserved.test(header.toLowerCase()) && !own.includes(header.toLowerCase()),
      { error: "cannot be set" },
    ),
  );
  return z.record(name, headerText);
}

function isObject({ value }: { readonly value: unknown }): boolean {
  return typeof value === "object" && value !== null;
}

/** A rule that depends on the connection. It is checked even if single members are invalid. */
function forConnection(
  path: "apiKey" | "listModels",
  error: string,
  test: (options: Partial<HttpOptions>) => boolean,
) {
  return z.refine<HttpOptions>(test, { error, path: [path], when: isObject });
}

/** The schema of a base URL. */
export const baseUrlSchema: Schema<string> = text(
  (value) => parseBaseUrl(value) !== null,
  "must be an http or https URL without user, query and fragment",
);

/** The members of the options' schema. `ownHeaders` are the headers that the provider itself sets, in lower case. */
export function httpOptions(ownHeaders: readonly string[] = []) {
  return {
    ...modelOptions,
    ...stateOptions,
    apiKey: z.exactOptional(credential),
    connection: z.exactOptional(connectionOwnership),
    listModels: z.exactOptional(z.boolean()),
    headers: z.exactOptional(headersSchema(ownHeaders)),
    trace: z.exactOptional(z.enum(["none", "send"])),
    billing: z.exactOptional(billingSchema),
    clock: z.exactOptional(
      z.custom<Clock>((value) => typeof value === "object" && value !== null, {
        error: "must be a clock",
      }),
    ),
  };
}

/** The rules between the options, for the `check` of a provider's schema. */
export const httpRules = [
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
] as const;
