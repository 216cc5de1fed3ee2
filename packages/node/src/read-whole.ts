import type { Readable } from "node:stream";

/** All of a body that is still on the socket, in one piece. It fails where the client leaves before its end. */
export function readFully(
  incoming: Readable,
  onBody: (bytes: Uint8Array) => void,
  onError: (thrown: unknown) => void,
): void {
  let chunks: Uint8Array[] | null = [];
  const onLeft = (): void => {
    if (chunks === null) return;
    chunks = null;
    onError(incoming.errored ?? new Error("The client left before the end of its request."));
  };
  const onEnd = (): void => {
    if (chunks === null) return;
    const whole = concatenate(chunks);
    chunks = null;
    onBody(whole);
  };
  if (incoming.destroyed || incoming.readableEnded) {
    onLeft();
    return;
  }
  incoming
    .on("data", (chunk: Uint8Array | string) => void chunks?.push(bytesOf(chunk, incoming)))
    // What comes after the end changes nothing: it costs less than to take all of it off again.
    .on("end", onEnd)
    .on("error", onLeft)
    .on("close", onLeft);
  // A framework may have paused it until it is wanted.
  incoming.resume();
}

/** A chunk of a body as bytes: where a framework has set an encoding, or put a stream of its own, it can be text. */
export function bytesOf(chunk: Uint8Array | string, from: Readable): Uint8Array {
  return typeof chunk === "string" ? Buffer.from(chunk, from.readableEncoding ?? "utf8") : chunk;
}

function concatenate(chunks: readonly Uint8Array[]): Uint8Array {
  const [only, ...others] = chunks;
  return only !== undefined && others.length === 0 ? only : Buffer.concat(chunks);
}
