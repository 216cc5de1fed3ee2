import type { Readable } from "node:stream";

/** All of a body that is still on the socket, in one piece. Rejects when the client leaves before its end. */
export function readWhole(incoming: Readable): Promise<ArrayBuffer> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    const onData = (chunk: Uint8Array | string): void => void chunks.push(bytesOf(chunk, incoming));
    const onEnd = (): void => {
      stop();
      resolve(inOnePiece(chunks));
    };
    const onLeft = (): void => {
      stop();
      reject(incoming.errored ?? new Error("The client left before the end of its request."));
    };
    const stop = (): void => {
      incoming.off("data", onData).off("end", onEnd).off("error", onLeft).off("close", onLeft);
    };
    if (incoming.destroyed || incoming.readableEnded) return onLeft();
    incoming.on("data", onData).on("end", onEnd).on("error", onLeft).on("close", onLeft);
    // A framework may have paused it until it is wanted.
    incoming.resume();
  });
}

/** A chunk of a body as bytes: where a framework has set an encoding, or put a stream of its own, it can be text. */
export function bytesOf(chunk: Uint8Array | string, from: Readable): Uint8Array {
  return typeof chunk === "string" ? Buffer.from(chunk, from.readableEncoding ?? "utf8") : chunk;
}

function inOnePiece(chunks: readonly Uint8Array[]): ArrayBuffer {
  const whole = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole.buffer;
}
