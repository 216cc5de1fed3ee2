import { type Json, ProviderError, type UpstreamCode, upstreamCode } from "@tollgate/core/provider";
import { isObject, membersOf } from "./answer-json.ts";
import type { ErrorFormat } from "./dialect.ts";

// Callers only see identifiers of an upstream's error: its free text can contain keys and account names.
const identifier = /^[a-z0-9_.[\]-]{1,64}$/;

/** Converts an HTTP error of the upstream to a ProviderError. */
export function errorAnswer(
  body: Json,
  details: {
    readonly status: number;
    readonly retryAfterMs: number | null;
    readonly secrets: readonly string[];
    readonly format: ErrorFormat;
  },
): ProviderError {
  const { status, retryAfterMs, secrets, format } = details;
  const { error } = membersOf(body);
  // Some upstreams send the error object as the whole body.
  const { [format.codeMember]: code, param } = membersOf(error ?? body);
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

/** Converts an error event of a stream to a ProviderError. The answer before it may have cost something. */
export function errorEvent(
  error: Json,
  details: {
    readonly answered: boolean;
    readonly secrets: readonly string[];
    readonly format: ErrorFormat;
  },
): ProviderError {
  const { codeMember, statuses } = details.format;
  const { [codeMember]: code, param, status } = membersOf(error);
  const known = typeof code === "string" ? statuses.get(code) : undefined;
  const meaning = knownCode(error);
  const named = known ?? errorStatus(code) ?? errorStatus(status) ?? statusOf(meaning);
  return new ProviderError("The provider reported an error instead of completing its answer.", {
    reason: "upstream_error",
    delivery: details.answered ? "unknown" : "answered",
    status: details.answered ? 200 : named,
    code: meaning ?? safeIdentifier(code, details.secrets),
    param: safeIdentifier(param, details.secrets),
    upstreamError: error,
    secrets: details.secrets,
  });
}

/** Returns the error of an error object, or null if it is an answer or a chunk. */
export function errorIn(value: Json): Json | null {
  if (!isObject(value)) return null;
  const { error } = value;
  return isObject(error) || (typeof error === "string" && error !== "") ? error : null;
}

function knownCode(error: Json): UpstreamCode | null {
  if (typeof error === "string") return upstreamCode([], error);
  const { code, type, status, message, innererror } = membersOf(error);
  return upstreamCode([code, type, status, membersOf(innererror)["code"]], message);
}

/** The status for what an error means. A content filter may also act on what the model has written. */
function statusOf(meaning: UpstreamCode | null): number {
  switch (meaning) {
    case "context_length_exceeded":
      return 400;
    case "rate_limit_exceeded":
      return 429;
    case "overloaded":
      return 503;
    default:
      return 200;
  }
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
