/**
 * The fake upstream: a process that answers every POST with prepared bytes over plain sockets, so it is never the
 * bottleneck. It counts its answers by the first part of the path, which names the caller.
 */
import { createServer, type Socket } from "node:net";
import {
  plainAnswer,
  streamEnd,
  streamedAnswer,
  streamHead,
  toolCallAnswer,
  unavailableAnswer,
} from "./answers.ts";
import { millisecondsPerEvent } from "./scenarios.ts";

/** The model `flaky` fails once in this number of calls. */
const failsOnceIn = 50;
const plain = plainAnswer();
const toolCall = toolCallAnswer();
const unavailable = unavailableAnswer();
const events = streamedAnswer();
const counts = new Map<string, number>();
let flakyCalls = 0;
/** Failed bodies, until their retry. */
const failed = new Set<string>();

const server = createServer({ noDelay: true }, (socket) => {
  let pending: Buffer = Buffer.alloc(0);
  socket.on("data", (bytes) => {
    pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes]);
    pending = answerWhatIsComplete(socket, pending);
  });
  socket.on("error", () => socket.destroy());
});

function answerWhatIsComplete(socket: Socket, bytes: Buffer): Buffer {
  let rest = bytes;
  while (true) {
    const headEnd = rest.indexOf("\r\n\r\n");
    if (headEnd < 0) return rest;
    const head = rest.toString("latin1", 0, headEnd);
    const length = /^content-length: *(\d+)/im.exec(head)?.[1];
    const path = /^POST \/([^/]+)\//.exec(head)?.[1];
    if (length === undefined || path === undefined) {
      socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      return Buffer.alloc(0);
    }
    const end = headEnd + 4 + Number(length);
    if (rest.length < end) return rest;
    answer(socket, path, rest.subarray(headEnd + 4, end));
    rest = rest.subarray(end);
  }
}

function answer(socket: Socket, path: string, body: Buffer): void {
  const model = modelOf(body);
  if (model === "flaky" && fails(body)) {
    socket.write(unavailable);
    return;
  }
  if (model === "paced" || model === "slow") {
    pace(socket, millisecondsPerEvent[model], () => count(path));
    return;
  }
  if (model === "burst") burst(socket);
  else if (model === "tools" && !body.includes('"role":"tool"')) socket.write(toolCall);
  else socket.write(plain);
  count(path);
}

/** A retry never fails: three failures in a row would reach the client as an error and end the run. */
function fails(body: Buffer): boolean {
  const key = body.toString("latin1");
  if (failed.delete(key)) return false;
  flakyCalls += 1;
  if (flakyCalls % failsOnceIn !== 0) return false;
  failed.add(key);
  return true;
}

/** The last part of the model's name, which is near the start or the end of a body. */
function modelOf(body: Buffer): string {
  const marked = "openai/";
  const first = body.subarray(0, 500).indexOf(marked);
  const at = (first < 0 ? body.lastIndexOf(marked) : first) + marked.length;
  return body.toString("latin1", at, body.indexOf('"', at));
}

/** Writes each event separately, as providers do, without waiting for the one before. */
function burst(socket: Socket): void {
  socket.write(streamHead);
  for (const event of events) socket.write(event);
  socket.write(streamEnd);
}

function pace(socket: Socket, milliseconds: number, ended: () => void): void {
  socket.write(streamHead);
  let next = 0;
  const timer = setInterval(send, milliseconds);
  send();

  function send(): void {
    const event = events[next];
    next += 1;
    if (event !== undefined) socket.write(event);
    if (next < events.length && !socket.destroyed) return;
    clearInterval(timer);
    socket.write(streamEnd);
    ended();
  }
}

function count(path: string): void {
  counts.set(path, (counts.get(path) ?? 0) + 1);
}

process.on("message", () => process.send?.(Object.fromEntries(counts)));
process.on("disconnect", () => process.exit(0));
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
