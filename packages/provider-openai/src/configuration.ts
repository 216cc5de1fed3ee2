import { modelProblems, stateProblems } from "@tollgate/core/provider";
import type { OpenaiCompatibleOptions } from "./options.ts";

const url =
  /^https?:\/\/(?:\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9.-]{1,253})(?::\d{1,5})?(?:\/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*$/;
const headerName = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const headerValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** What the provider writes itself, and what would change how the message is framed or where it goes. */
const reserved =
  /^(?:authorization|content-.*|accept|accept-encoding|host|connection|keep-alive|transfer-encoding|upgrade|expect|te|trailer|cookie|proxy-.*)$/;

/** Reads a base URL strictly: a scheme, a host and a path, and nothing that two parsers could read differently. */
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

/** Whether a credential can stand in a header. */
export function isCredential(value: unknown): value is string {
  return typeof value === "string" && value.length <= 8_192 && headerValue.test(value);
}

/** What is wrong with the options, one sentence each, without their secrets. */
export function problemsOf(options: OpenaiCompatibleOptions): readonly string[] {
  return [
    ...(parseBaseUrl(options.baseURL) === null
      ? ["baseURL must be an http or https URL without user, query and fragment"]
      : []),
    ...credentialProblems(options),
    ...listProblems(options),
    ...Object.entries(options.headers ?? {}).flatMap(headerProblems),
    ...modelProblems(options.models),
    ...stateProblems(options),
  ];
}

function credentialProblems({ apiKey, connection }: OpenaiCompatibleOptions): readonly string[] {
  if (connection !== undefined && connection !== "platform" && connection !== "customer")
    return ['connection must be "platform" or "customer"'];
  if (connection === "customer")
    return apiKey === undefined || apiKey === null
      ? []
      : [
          "apiKey has no use on a customer-owned connection: the organization's own credential is sent",
        ];
  if (apiKey === undefined)
    return ["apiKey is undefined: pass a string, a function, or null for an upstream without keys"];
  return apiKey === null || typeof apiKey === "function" || isCredential(apiKey)
    ? []
    : ["apiKey must be visible ASCII characters"];
}

function listProblems({ listModels, connection }: OpenaiCompatibleOptions): readonly string[] {
  if (listModels !== undefined && typeof listModels !== "boolean")
    return ["listModels must be true or false"];
  return listModels === true && connection === "customer"
    ? ["listModels asks with the platform's credential, and a customer-owned connection has none"]
    : [];
}

function headerProblems([name, value]: readonly [string, unknown]): readonly string[] {
  const lower = name.toLowerCase();
  if (!headerName.test(lower)) return [`headers: ${JSON.stringify(name)} is not a header name`];
  if (reserved.test(lower)) return [`headers: ${name} cannot be set`];
  return typeof value === "string" && headerValue.test(value)
    ? []
    : [`headers: the value of ${name} must be visible ASCII characters`];
}
