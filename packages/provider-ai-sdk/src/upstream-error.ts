import { JSONParseError, TypeValidationError } from "@ai-sdk/provider";
import { ProviderError, retryAfterMs, upstreamCode } from "@tollgate/core/provider";
import { invalidAnswer, transportFailure } from "./failures.ts";

/** An answer with an error status. */
export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The body as JSON, or else as text; undefined without a body. */
  readonly body: unknown;
}

// Callers only see identifiers of an upstream's error: its free text can contain keys and account names.
const identifier = /^[a-z0-9_.[\]-]{1,64}$/;

/** Converts an error status to a ProviderError. */
export function statusFailure({ status, headers, body }: ErrorAnswer, now: number): ProviderError {
  return new ProviderError(`The provider answered with status ${status}.`, {
    reason: `status_${status}`,
    delivery: "answered",
    status,
    retryAfterMs: retryAfterMs(headers, now),
    code: codeOf(body),
    param: safeIdentifier(member(member(body, "error"), "param")),
    upstreamError: body,
  });
}

/** Converts an error inside an answer to a ProviderError. The answer before it may have cost something. */
export function errorWithin(error: unknown, written: boolean): ProviderError {
  if (error instanceof ProviderError) return error;
  if (JSONParseError.isInstance(error) || TypeValidationError.isInstance(error))
    return invalidAnswer("invalid_event", "The provider sent an invalid event.");
  const status = member(error, "statusCode");
  return (
    transportFailure(error) ??
    new ProviderError("The provider reported an error instead of completing its answer.", {
      reason: "upstream_error",
      delivery: written ? "unknown" : "answered",
      status: written || typeof status !== "number" ? 200 : status,
      code: codeOf({ error }),
      upstreamError: error instanceof Error ? error.message : error,
    })
  );
}

/** Returns the code that clients act on, or else the first identifier among the members that vendors use. */
function codeOf(body: unknown): string | null {
  const error = member(body, "error");
  const candidates = [
    member(error, "code"),
    member(error, "type"),
    member(body, "code"),
    member(body, "type"),
  ];
  const text = member(error, "message") ?? member(body, "message");
  const meaning = upstreamCode([...candidates, member(error, "status")], text);
  if (meaning !== null) return meaning;
  return candidates.map(safeIdentifier).find((code) => code !== null && code !== "error") ?? null;
}

function safeIdentifier(value: unknown): string | null {
  return typeof value === "string" && identifier.test(value) ? value : null;
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
