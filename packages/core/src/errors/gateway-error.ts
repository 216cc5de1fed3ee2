import { type ErrorCode, errorShapes } from "./codes.ts";

/** One thing that is wrong with an input. */
export interface Problem {
  /** Where, such as `budgets[0].limit`; empty for the input as a whole. */
  readonly path: string;
  /** A sentence that names the path. */
  readonly message: string;
}

/** Optional details of a GatewayError. */
export interface GatewayErrorDetails {
  /** The request field at fault, as a path: `messages[0].content`. */
  readonly param?: string;
  /** The HTTP status, if it differs from the code's: 503 and 504 of `upstream_error`. */
  readonly status?: number;
  /** The provider's error code, already sanitized, to send instead of `code`. */
  readonly wireCode?: string;
  /** Further response headers, such as `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether a retry can help, if it differs from the code's default. */
  readonly retry?: boolean;
  /** Every problem of a configuration or of arguments. */
  readonly problems?: readonly Problem[];
  readonly cause?: unknown;
}

/**
 * The only error this library throws. `code` is from a closed union and determines `status` and `type`. The message is safe
 * to show to callers: it never contains a secret, a key or content.
 */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly type: string;
  readonly param: string | null;
  readonly wireCode: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Every problem of an invalid configuration or of invalid arguments, in order. Empty for other errors. */
  readonly problems: readonly Problem[];

  constructor(code: ErrorCode, message: string, details: GatewayErrorDetails = {}) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    const shape: { status: number; type: string; retry?: boolean } = errorShapes[code];
    const retry = details.retry ?? shape.retry;
    this.code = code;
    this.status = details.status ?? shape.status;
    this.type = shape.type;
    this.param = details.param ?? null;
    this.wireCode = details.wireCode ?? code;
    this.problems = details.problems ?? [];
    this.headers = {
      ...(retry === undefined ? {} : { "x-should-retry": String(retry) }),
      ...details.headers,
    };
  }
}

/** The error for an argument of an administrative call. */
export function invalidArgument(param: string, message: string): GatewayError {
  return new GatewayError("invalid_argument", message, { param });
}

/** The error for an API key that does something too often, until this many milliseconds have passed. */
export function tooOften(message: string, waitMs: number): GatewayError {
  return new GatewayError("rate_limit_exceeded", message, { headers: waitHeaders(waitMs) });
}

/** The headers that say when to try again. */
export function waitHeaders(ms: number): Readonly<Record<string, string>> {
  return { "retry-after": String(Math.ceil(ms / 1_000)), "retry-after-ms": String(Math.ceil(ms)) };
}

/** The body of every error over HTTP, as JSON. All four keys are always present. */
export function errorBody({
  message,
  type,
  param,
  wireCode: code,
}: Pick<GatewayError, "message" | "type" | "param" | "wireCode">): string {
  return JSON.stringify({ error: { message, type, param, code } });
}

/** The error to send to a client. Errors of other origin, and those of the administration, become `internal_error`. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError && !("admin" in errorShapes[thrown.code])) return thrown;
  return new GatewayError("internal_error", "The gateway failed to handle this request.", {
    cause: thrown,
  });
}

/** The status, type and body of an error in the admin API. Errors of other origin become `internal_error`. */
export function administrationFailure(thrown: unknown): {
  readonly status: number;
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
} {
  const error = thrown instanceof GatewayError ? thrown : toGatewayError(thrown);
  const { code, message, param, wireCode } = error;
  const shape: { readonly status: number; readonly admin?: number } = errorShapes[code];
  const { admin = error.status } = shape;
  if (admin === error.status)
    return { status: admin, code, headers: error.headers, body: errorBody(error) };
  const type = admin < 500 ? "invalid_request_error" : "server_error";
  return {
    status: admin,
    code,
    headers: { "x-should-retry": String(admin >= 500), ...error.headers },
    body: errorBody({ message, type, param, wireCode }),
  };
}

/** Where an error was thrown. Leaves out its message, which could contain anything. */
export function whereOf(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause;
  const frames = (cause.stack ?? "").split("\n").filter((frame) => /^\s+at /.test(frame));
  return [cause.name, ...frames].join("\n");
}
