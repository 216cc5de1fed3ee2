import type { ReadableStream } from "node:stream/web";
import type { Clock } from "@tollgate/core/provider";

// How long the body of an error is awaited after its status.
const gracePeriodMs = 2_000;
const maxBytes = 65_536;

/** The body of an error, as far as it comes soon and is short; text where it is no JSON. */
export async function readErrorBody(
  body: ReadableStream<Uint8Array> | null,
  clock: Clock,
  signal: AbortSignal,
): Promise<unknown> {
  if (body === null) return undefined;
  const reader = body.getReader();
  const stop = (): void => void reader.cancel().catch(() => {});
  const cancelGracePeriod = clock.after(gracePeriodMs, stop);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      chunks.push(read.value);
      bytes += read.value.length;
      if (bytes > maxBytes) return undefined;
    }
  } catch {
    // A broken body takes nothing from the status; only the caller's own abort goes on.
    signal.throwIfAborted();
  } finally {
    cancelGracePeriod();
    stop();
  }
  const text = Buffer.concat(chunks).toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
