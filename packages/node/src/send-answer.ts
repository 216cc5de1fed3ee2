import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { type GatewayResponse, type StreamBody, systemClock } from "@tollgate/core";
import { defaultServerLimits } from "./server-limits.ts";

/** The size of one write in bytes. Each write must make progress within `writeStall`. */
const pieceBytes = 65_536;
const maxTextCharacters = 8_192;

/**
 * Writes a web `Response` to a Node response, no faster than the client reads. Cancels the body if the client
 * disconnects, or doesn't read for `writeStall` milliseconds (default 30,000).
 * Resolves when everything is written or the client is gone. If the body fails, closes the connection and rejects.
 */
export async function send(
  outgoing: ServerResponse,
  response: Response,
  writeStall: number = defaultServerLimits.writeStall,
): Promise<void> {
  const { body } = response;
  const drop = (): void => void body?.cancel().catch(() => {});
  begin(outgoing, response.status, [...response.headers].flat(), drop);
  if (body === null) return finish(outgoing, writeStall);
  if (!response.headers.has("content-length")) outgoing.flushHeaders();
  const reader = body.getReader();
  const leave = (): void => void reader.cancel().catch(() => {});
  await whileConnected(outgoing, leave, async () => {
    while (isWritable(outgoing)) {
      const { done, value } = await reader.read();
      if (done) break;
      if (!outgoing.destroyed && !outgoing.write(value))
        await untilTaken(outgoing, "drain", writeStall);
    }
  });
  await finish(outgoing, writeStall);
}

/** Writes a gateway's answer like `send`, but without a `Response`. */
export function sendAnswer(
  outgoing: ServerResponse,
  { status, headers, body }: GatewayResponse,
  writeStall: number = defaultServerLimits.writeStall,
): Promise<void> {
  try {
    return typeof body === "string"
      ? sendText(outgoing, { status, headers, body }, writeStall)
      : sendStream(outgoing, { status, headers, body }, writeStall);
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}

function sendText(
  outgoing: ServerResponse,
  { status, headers, body }: GatewayResponse & { readonly body: string },
  writeStall: number,
): Promise<void> {
  const bytes = Buffer.byteLength(body);
  outgoing.writeHead(status, { ...headers, "content-length": bytes });
  return bytes <= pieceBytes
    ? finish(outgoing, writeStall, body)
    : sendPieces(outgoing, Buffer.from(body), writeStall);
}

/** Writes the head. If that fails, for example because the host already answered, it cancels the body. */
function begin(
  outgoing: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders | string[],
  leave: () => void,
): void {
  try {
    outgoing.writeHead(status, headers);
  } catch (thrown) {
    leave();
    throw thrown;
  }
}

/** Resolves when the body is written or the client is gone. If the body fails, closes the connection and rejects. */
function sendStream(
  outgoing: ServerResponse,
  { status, headers, body }: GatewayResponse & { readonly body: StreamBody },
  writeStall: number,
): Promise<void> {
  const { byteLength } = body;
  const sent = byteLength === null ? headers : { ...headers, "content-length": byteLength };
  begin(outgoing, status, sent, () => body.leave());
  let hasWritten = false;
  return new Promise((resolve, reject) => {
    const end = (): void => {
      outgoing.off("close", leave);
      resolve(finish(outgoing, writeStall));
    };
    const leave = (): void => {
      body.leave();
      end();
    };
    // Writes after the client disconnected are reported as errors, after `close`.
    outgoing.on("close", leave).on("error", leave);
    if (isWritable(outgoing))
      body.start({
        write(text) {
          hasWritten = true;
          const isTaken =
            outgoing.destroyed || outgoing.write(isLong(text) ? Buffer.from(text) : text);
          return isTaken ? null : untilTaken(outgoing, "drain", writeStall);
        },
        end,
        fail(thrown) {
          cutOff(outgoing.off("close", leave));
          reject(thrown);
        },
      });
    else leave();
    // Send the headers of a stream before its first event, or together if it is ready.
    if (!hasWritten && !outgoing.writableEnded) outgoing.flushHeaders();
  });
}

/** Written as bytes: until the client has read a text, Node keeps both the text and its bytes. */
function isLong(text: string): boolean {
  return text.length > maxTextCharacters;
}

/** Writes in pieces, so a slow client can make progress. */
async function sendPieces(
  outgoing: ServerResponse,
  bytes: Buffer,
  writeStall: number,
): Promise<void> {
  for (let at = 0; at < bytes.length && isWritable(outgoing); at += pieceBytes)
    if (!outgoing.write(bytes.subarray(at, at + pieceBytes)))
      await untilTaken(outgoing, "drain", writeStall);
  await finish(outgoing, writeStall);
}

/** Runs `write`, and `leave` when the client disconnects. A body that fails must not look complete. */
async function whileConnected(
  outgoing: ServerResponse,
  leave: () => void,
  write: () => Promise<void>,
): Promise<void> {
  outgoing.once("close", leave);
  // Writes after the client disconnected are reported here, after `close`.
  outgoing.on("error", leave);
  if (!isWritable(outgoing)) leave();
  try {
    await write();
  } catch (thrown) {
    cutOff(outgoing);
    throw thrown;
  } finally {
    outgoing.off("close", leave);
  }
}

/** Closes the connection or, over HTTP/2, the stream. Without an error, the stream would look complete. */
export function cutOff(outgoing: ServerResponse): void {
  const isStream = outgoing.req.httpVersionMajor > 1;
  outgoing.destroy(isStream ? new Error("The answer can't be completed.") : undefined);
}

function isWritable(outgoing: ServerResponse): boolean {
  return !outgoing.destroyed && outgoing.req.method !== "HEAD";
}

function finish(outgoing: ServerResponse, writeStall: number, last?: string): Promise<void> {
  if (!outgoing.destroyed && !outgoing.writableEnded) outgoing.end(last);
  return untilTaken(outgoing, "finish", writeStall);
}

/** Resolves when the client has read everything or is gone. Disconnects it after `writeStall`. */
function untilTaken(
  outgoing: ServerResponse,
  event: "drain" | "finish",
  writeStall: number,
): Promise<void> {
  return new Promise((resolve) => {
    if (outgoing.destroyed || outgoing.writableFinished) return resolve();
    // If the system has taken all bytes, there is nothing to wait for.
    const cancel =
      outgoing.writableLength === 0
        ? null
        : systemClock.after(writeStall, () => cutOff(outgoing), { background: true });
    const done = (): void => {
      cancel?.();
      outgoing.off(event, done).off("close", done);
      resolve();
    };
    outgoing.on(event, done).on("close", done);
  });
}
