import { type ErrorCode, errorShapes } from "./codes.ts";

/** One thing that is wrong with an input. */
export interface Problem {
  /** Where, such as `budgets[0].limit`; empty for the input as a whole. */
  readonly path: string;
  /** A sentence that names the path. */
  readonly message: string;
}

/** What a GatewayError may carry beside its code and message. */
export interface GatewayErrorDetails {
  /** The request field at fault, as a path: `messages[0].content`. */
  readonly param?: string;
  /** The status on the wire where it is not the code's own: 503 and 504 of `upstream_error`. */
  readonly status?: number;
  /** A code of the provider's own, already sanitised, sent instead of the error's. */
  readonly wireCode?: string;
  /** Further response headers, such as `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether a retry can help, where it is not the code's own answer. */
  readonly retry?: boolean;
  /** Every problem of a configuration or of arguments, where there can be several. */
  readonly problems?: readonly Problem[];
  readonly cause?: unknown;
}

/**
 * The one error this library throws. `code` is from a closed union, `status` and `type` follow from it.
 * The message is safe to show to the caller: it never holds a secret, a key or content.
 */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly type: string;
  readonly param: string | null;
  readonly wireCode: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Every problem of a refused configuration or of refused arguments, in order; empty for any other error. */
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

/** The error body: all four keys are always present. */
export function errorBody(error: GatewayError): string {
  return JSON.stringify({
    error: { message: error.message, type: error.type, param: error.param, code: error.wireCode },
  });
}

/**
 * Any thrown value as what a caller over HTTP is told; what is not ours, or is not for callers, becomes
 * `internal_error` and keeps its cause.
 */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError && !("inProcess" in errorShapes[thrown.code])) return thrown;
  return new GatewayError("internal_error", "The gateway failed to handle this request.", {
    cause: thrown,
  });
}
