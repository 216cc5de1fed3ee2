import type { Readable } from "node:stream";

/** All of a body that is still on the socket, in one piece. Rejects when the client leaves before its end. */
export function readWhole(incoming: Readable): Promise<ArrayBuffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const onData = (chunk: Buffer): void => void chunks.push(chunk);
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
  });
}

function inOnePiece(chunks: readonly Buffer[]): ArrayBuffer {
  const whole = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole.buffer;
}
