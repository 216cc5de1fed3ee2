import type { ClientSignal } from "../domain/client-signal.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayRequest, RequestHeaders } from "./gateway-request.ts";

/**
 * Reads a request's body, at most `most` bytes of it. A body that announces its length is taken in one piece, since
 * no HTTP server passes on more than was announced; any other is counted as it arrives.
 * Throws or rejects with a GatewayError: `request_too_large`, or `invalid_json` when the upload ended early or was read
 * by someone else.
 */
export function readBytes(request: GatewayRequest, maxBytes: number): Promise<Buffer> {
  if (request.bodyUsed)
    throw new GatewayError(
      "invalid_json",
      "The request's body was read before the gateway got it, and nothing of it was kept.",
    );
  const length = announcedLength(request.headers);
  if (length !== null && length > maxBytes) throw tooLarge(maxBytes);
  return new Promise((resolve, reject) => {
    const taken = (bytes: Uint8Array): void => {
      if (request.signal.aborted) reject(endedEarly(request.signal.reason));
      else if (bytes.length > maxBytes) reject(tooLarge(maxBytes));
      else resolve(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    };
    const failed = (error: unknown): void =>
      reject(error instanceof GatewayError ? error : endedEarly(error));
    if (length === null) readCounted(request, maxBytes).then(taken, failed);
    else if ("readBody" in request) request.readBody(taken, failed);
    else
      unlessAborted(request.signal, request.arrayBuffer()).then(
        (bytes) => taken(new Uint8Array(bytes)),
        failed,
      );
  });
}

function endedEarly(cause: unknown): GatewayError {
  return new GatewayError("invalid_json", "The request body ended before it was complete.", {
    cause,
  });
}

function announcedLength(headers: RequestHeaders): number | null {
  const text = headers.get("content-length");
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

async function readCounted(request: GatewayRequest, maxBytes: number): Promise<Uint8Array> {
  if (request.body === null) return Buffer.alloc(0);
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await unlessAborted(request.signal, reader.read());
      if (done) return Buffer.concat(chunks, length);
      length += value.length;
      if (length > maxBytes) throw tooLarge(maxBytes);
      chunks.push(value);
    }
  } catch (error) {
    // Whatever ended the reading, the sender is told to stop; how that goes does not matter.
    reader.cancel(error).catch(() => {});
    throw error;
  }
}

/** The promise's value, or a rejection as soon as the signal aborts: who has left waits for nothing. */
export function unlessAborted<Value>(
  signal: ClientSignal,
  promise: Promise<Value>,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(
      (value) => {
        signal.removeEventListener("abort", onAbort);
        resolve(value);
      },
      (thrown: unknown) => {
        signal.removeEventListener("abort", onAbort);
        reject(thrown);
      },
    );
  });
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError(
    "request_too_large",
    `The request body is larger than ${maxBytes} bytes.`,
  );
}
