import { type Json, ProviderError, upstreamCode } from "@tollgate/core/provider";
import { isObject, membersOf } from "./json.ts";

// What a caller may see of an upstream's error is an identifier: its free text can hold keys and account names.
const identifier = /^[a-z0-9_.[\]-]{1,64}$/;

/** The failure an upstream's error object stands for: an HTTP error, or an error in place of an answer. */
export function errorAnswer(
  body: Json,
  details: {
    readonly status: number;
    readonly retryAfterMs: number | null;
    readonly secrets: readonly string[];
  },
): ProviderError {
  const { status, retryAfterMs, secrets } = details;
  const { error } = membersOf(body);
  // Some upstreams answer with the error itself.
  const { code, param } = membersOf(error ?? body);
  return new ProviderError(`The provider answered with status ${status}.`, {
    reason: `status_${status}`,
    delivery: "answered",
    status,
    retryAfterMs,
    code: knownCode(error ?? body) ?? safeIdentifier(code, secrets),
    param: safeIdentifier(param, secrets),
    upstreamError: body,
    secrets,
  });
}

/** The failure of an error that came as an event; what was already answered before it may have cost something. */
export function errorEvent(
  error: Json,
  details: { readonly answered: boolean; readonly secrets: readonly string[] },
): ProviderError {
  const { code, param, status } = membersOf(error);
  return new ProviderError("The provider reported an error instead of completing its answer.", {
    reason: "upstream_error",
    delivery: details.answered ? "unknown" : "answered",
    status: details.answered ? 200 : (errorStatus(code) ?? errorStatus(status) ?? 200),
    code: knownCode(error) ?? safeIdentifier(code, details.secrets),
    param: safeIdentifier(param, details.secrets),
    upstreamError: error,
    secrets: details.secrets,
  });
}

/** Whether this is an error object instead of an answer or a chunk. */
export function errorIn(value: Json): Json | null {
  if (!isObject(value)) return null;
  const { error } = value;
  return isObject(error) || (typeof error === "string" && error !== "") ? error : null;
}

function knownCode(error: Json): string | null {
  if (typeof error === "string") return upstreamCode([], error);
  const { code, type, status, message, innererror } = membersOf(error);
  return upstreamCode([code, type, status, membersOf(innererror)["code"]], message);
}

function errorStatus(value: Json | undefined): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 400 && value <= 599
    ? value
    : null;
}

function safeIdentifier(value: Json | undefined, secrets: readonly string[]): string | null {
  if (typeof value !== "string" || !identifier.test(value)) return null;
  return secrets.some((secret) => value.includes(secret)) ? null : value;
}
