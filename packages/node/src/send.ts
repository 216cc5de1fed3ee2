import type { ServerResponse } from "node:http";
import type { Answer } from "@tollgate/core";
import { defaultServerLimits } from "./server-limits.ts";

/** A body as it is written: what comes next, and what to do when the client leaves. */
interface Chunks {
  next(): Promise<{
    readonly done?: boolean | undefined;
    readonly value?: string | Uint8Array | undefined;
  }>;
  leave(): void;
}

/** What is handed to the socket at once; progress is watched from one such piece to the next. Bytes. */
const pieceBytes = 65_536;

/**
 * Writes a web `Response` to a Node response, no faster than the client reads. The body is cancelled when the client
 * leaves, or has not taken what waits for it within `writeStall` milliseconds (default 30,000).
 * Resolves when all is written or the client is gone; rejects when the body fails, having cut the connection.
 */
export async function send(
  outgoing: ServerResponse,
  response: Response,
  writeStall: number = defaultServerLimits.writeStall,
): Promise<void> {
  outgoing.writeHead(response.status, [...response.headers].flat());
  const reader = response.body?.getReader();
  if (reader === undefined) return finish(outgoing, writeStall);
  if (!response.headers.has("content-length")) outgoing.flushHeaders();
  await pump(outgoing, fromReader(reader), writeStall);
}

/** Writes a gateway's answer as `send` writes a `Response`, without building one. */
export async function sendAnswer(
  outgoing: ServerResponse,
  answer: Answer,
  writeStall: number = defaultServerLimits.writeStall,
): Promise<void> {
  const { body } = answer;
  if (typeof body !== "string") {
    outgoing.writeHead(answer.status, answer.headers);
    // The headers of a stream do not wait for its first event.
    outgoing.flushHeaders();
    return pump(outgoing, fromIterable(body), writeStall);
  }
  const length = Buffer.byteLength(body);
  outgoing.writeHead(answer.status, { ...answer.headers, "content-length": length });
  if (length <= pieceBytes) return finish(outgoing, writeStall, body);
  await pump(outgoing, fromBytes(Buffer.from(body)), writeStall);
}

async function pump(outgoing: ServerResponse, chunks: Chunks, writeStall: number): Promise<void> {
  const leave = (): void => chunks.leave();
  outgoing.once("close", leave);
  // A write that comes after the client left is reported here; `close` has been told already.
  outgoing.on("error", leave);
  if (outgoing.destroyed || isHead(outgoing)) leave();
  try {
    while (!outgoing.destroyed && !isHead(outgoing)) {
      const { done, value } = await chunks.next();
      if (done || value === undefined) break;
      if (outgoing.destroyed || outgoing.write(value)) continue;
      await taken(outgoing, "drain", writeStall);
    }
  } catch (thrown) {
    // A body that fails in the middle must not look complete.
    outgoing.destroy();
    throw thrown;
  } finally {
    outgoing.off("close", leave);
  }
  await finish(outgoing, writeStall);
}

async function finish(outgoing: ServerResponse, writeStall: number, last?: string): Promise<void> {
  if (outgoing.destroyed) return;
  outgoing.end(last);
  if (!outgoing.writableFinished) await taken(outgoing, "finish", writeStall);
}

function isHead(outgoing: ServerResponse): boolean {
  return outgoing.req.method === "HEAD";
}

/** Waits until the client took what was written, or is gone; after `writeStall` it is taken for gone. */
function taken(
  outgoing: ServerResponse,
  event: "drain" | "finish",
  writeStall: number,
): Promise<void> {
  return new Promise((resolve) => {
    if (outgoing.destroyed) return resolve();
    const stall = setTimeout(() => outgoing.destroy(), writeStall);
    stall.unref();
    const done = (): void => {
      clearTimeout(stall);
      outgoing.off(event, done).off("close", done);
      resolve();
    };
    outgoing.on(event, done).on("close", done);
  });
}

function fromReader(reader: ReadableStreamDefaultReader<Uint8Array>): Chunks {
  return {
    next: () => reader.read(),
    leave: () => void reader.cancel().catch(() => {}),
  };
}

function fromIterable(iterable: AsyncIterable<string>): Chunks {
  const iterator = iterable[Symbol.asyncIterator]();
  return {
    next: () => iterator.next(),
    leave: () => void iterator.return?.().catch(() => {}),
  };
}

/** Bytes in pieces, so that a slow client is seen to make progress. */
function fromBytes(bytes: Uint8Array): Chunks {
  let at = 0;
  return {
    async next() {
      const value = bytes.subarray(at, at + pieceBytes);
      at += pieceBytes;
      return { done: value.length === 0, value };
    },
    leave() {
      at = bytes.length;
    },
  };
}
