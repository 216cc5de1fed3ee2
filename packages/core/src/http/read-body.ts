import { isUtf8 } from "node:buffer";
import type { Limits } from "../domain/limits.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { unlessAborted } from "../kernel/bounded-wait.ts";
import { addChunk } from "../kernel/byte-chunks.ts";
import { type AfterReads, isLarge, yieldToEventLoop } from "../kernel/event-loop.ts";
import { guardJson, type JsonFaultKind, rawNumber } from "../kernel/json-guard.ts";
import { isObject } from "../kernel/stable-json.ts";
import type { GatewayRequest, RequestHeaders } from "./gateway-request.ts";
import { requireJsonBody } from "./headers.ts";

/** Members that contain JSON Schemas, or inputs of tools, or values that SDKs parse from answers. */
const freeForm = new Map([
  ["parameters", "schemaDepth"],
  ["schema", "schemaDepth"],
  ["input_schema", "schemaDepth"],
  ["input", "depth"],
  ["input_examples", "depth"],
  ["parsed_arguments", "depth"],
  ["parsed", "depth"],
] as const);

/** Room for a body, taken before it is read. Both methods throw if there is none. */
export interface BodyRoom {
  /** Takes room for the request, and for the bytes that its header announces. */
  admit(bytes: number): void;
  /** Takes room for further bytes as they arrive. */
  grow(bytes: number): void;
}

/** How bodies are read. */
export interface BodyReading {
  readonly limits: Limits;
  /** Takes a body once it is read. Default: at once. */
  readonly afterReads?: AfterReads;
}

/**
 * Reads the bytes of a JSON body, up to `limits.imageBodyBytes`. Throws or rejects with a GatewayError:
 * `unsupported_media_type`, `request_too_large`, or `invalid_json` if the upload ended early or someone else read it.
 */
export function readBody(
  request: GatewayRequest,
  reading: BodyReading,
  room: BodyRoom,
): Promise<Buffer> {
  requireJsonBody(request.headers);
  return readBytes(request, reading, room);
}

/**
 * Parses a body as a JSON object. Rejects bodies that are not JSON in UTF-8, are too large or too deep, or that another
 * reader could understand differently: duplicate keys, lost digits, halves of surrogate pairs. Numbers in free-form members
 * keep all their digits instead. Yields to other requests while it parses a large body. Throws or rejects with a
 * GatewayError: `request_too_large` or `invalid_json`.
 */
export function parseBody(bytes: Buffer, limits: Limits): object | Promise<object> {
  if (isLarge(bytes.length)) return parseLarge(bytes, limits);
  const text = requireSound(textOf(bytes, limits), limits);
  return bodyOf(parse(text), text);
}

async function parseLarge(bytes: Buffer, limits: Limits): Promise<object> {
  await yieldToEventLoop();
  const text = textOf(bytes, limits);
  await yieldToEventLoop();
  const sound = requireSound(text, limits);
  await yieldToEventLoop();
  const value = parse(sound);
  await yieldToEventLoop();
  const body = bodyOf(value, sound);
  await yieldToEventLoop();
  return body;
}

function textOf(bytes: Buffer, limits: Limits): string {
  if (bytes.length === 0) throw invalid("The request has no body.");
  if (!isUtf8(bytes)) throw invalid("The request body is not valid UTF-8.");
  const text = bytes.toString("utf8");
  if (bytes.length > limits.bodyBytes) requireImages(text, bytes.length, limits);
  return text;
}

/** Only image data may exceed `bodyBytes`. Everything else must fit. */
function requireImages(text: string, bytes: number, limits: Limits): void {
  const opening = '"data:image';
  let images = 0;
  for (let at = text.indexOf(opening); at >= 0; ) {
    const end = text.indexOf('"', at + 1);
    if (end < 0) break;
    images += end - at;
    at = text.indexOf(opening, end + 1);
  }
  if (bytes - images > limits.bodyBytes)
    throw new GatewayError(
      "request_too_large",
      `The request body is larger than ${limits.bodyBytes} bytes, not counting images.`,
    );
}

/** Marks a string that replaces a number: half of a surrogate pair, so no well-formed string begins with it. */
const numberMark = "\udc00";

/** Throws if the text has faults. Returns it with marked strings in place of the numbers whose digits must be kept. */
function requireSound(text: string, limits: Limits): string {
  let marked = "";
  let from = 0;
  const mark = (at: number, end: number): void => {
    marked += `${text.slice(from, at)}"${numberMark}${text.slice(at, end)}"`;
    from = end;
  };
  const fault = guardJson(text, {
    depth: limits.depth,
    schemaDepth: limits.schemaDepth,
    freeForm,
    noteLongNumber: rawNumber === null ? undefined : mark,
    keys: limits.keys,
    values: limits.values,
  });
  if (fault === null) return marked + text.slice(from);
  const where = fault.path === "" ? "" : ` (at ${fault.path})`;
  throw invalid(`${faultMessages[fault.kind]}${where}.`);
}

const faultMessages: Readonly<Record<JsonFaultKind, string>> = {
  depth: "The request body is nested too deeply",
  keys: "An object in the request body has too many members",
  values: "The request body has too many values",
  "duplicate-key": "An object in the request body has the same member twice",
  "forbidden-key": "The request body has a member with a forbidden name",
  number: "The request body has a number that can't be represented exactly",
  surrogate: "The request body has text that isn't well-formed Unicode",
};

function parse(text: string): unknown {
  return orInvalid(() => JSON.parse(text), text);
}

function bodyOf(value: unknown, text: string): object {
  if (text.includes(numberMark)) orInvalid(() => restoreNumbers(value), text);
  if (isObject(value)) return value;
  throw invalid("The request body must be a JSON object.");
}

function orInvalid(read: () => unknown, text: string): unknown {
  try {
    return read();
  } catch (error) {
    // The parser's own message quotes the text, so only its position is passed on, unless marks have shifted it.
    const at = text.includes(numberMark) ? null : /at position (\d+)/.exec(String(error));
    const where = at ? ` (at character ${at[1]})` : "";
    throw invalid(`The request body is not valid JSON${where}.`);
  }
}

/** Marking and restoring numbers take two turns of the event loop, each shorter than `JSON.parse` with a reviver. */
function restoreNumbers(value: unknown): unknown {
  if (typeof value === "string")
    return value.startsWith(numberMark) ? rawNumber?.(value.slice(1)) : value;
  if (typeof value !== "object" || value === null) return value;
  for (const key of Object.keys(value)) {
    const before: unknown = Reflect.get(value, key);
    const after = restoreNumbers(before);
    if (after !== before) Reflect.set(value, key, after);
  }
  return value;
}

function invalid(message: string): GatewayError {
  return new GatewayError("invalid_json", message);
}

/**
 * Reads a request's body, up to `maxBytes`. A body with a `content-length` is read in one piece, because HTTP servers pass
 * on no more than that. Any other body is counted as it arrives. Throws or rejects with a GatewayError:
 * `request_too_large`, or `invalid_json` if the upload ended early or someone else read it.
 */
function readBytes(
  request: GatewayRequest,
  { limits: { imageBodyBytes: maxBytes }, afterReads = atOnce }: BodyReading,
  room: BodyRoom,
): Promise<Buffer> {
  if (request.bodyUsed)
    throw new GatewayError(
      "invalid_json",
      "The request body was already read. Pass the request on before anything reads its body.",
    );
  const length = announcedLength(request.headers);
  if (length !== null && length > maxBytes) throw tooLarge(maxBytes);
  room.admit(length ?? 0);
  return new Promise((resolve, reject) => {
    const taken = (bytes: Uint8Array): void =>
      afterReads(() => {
        if (request.signal.aborted) reject(endedEarly(request.signal.reason));
        else if (bytes.length > maxBytes) reject(tooLarge(maxBytes));
        else resolve(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
      });
    const failed = (error: unknown): void =>
      reject(error instanceof GatewayError ? error : endedEarly(error));
    if (length === null) readCounted(request, maxBytes, room).then(taken, failed);
    else if ("readBody" in request) request.readBody(taken, failed);
    else
      unlessAborted(request.signal, request.arrayBuffer()).then(
        (bytes) => taken(new Uint8Array(bytes)),
        failed,
      );
  });
}

const atOnce: AfterReads = (work) => work();

function endedEarly(cause: unknown): GatewayError {
  return new GatewayError("invalid_json", "The request body ended before it was complete.", {
    cause,
  });
}

function announcedLength(headers: RequestHeaders): number | null {
  const text = headers.get("content-length");
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

async function readCounted(
  request: GatewayRequest,
  maxBytes: number,
  room: BodyRoom,
): Promise<Uint8Array> {
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
      room.grow(value.length);
      addChunk(chunks, value);
    }
  } catch (error) {
    // Tell the sender to stop. Whether that works doesn't matter.
    reader.cancel(error).catch(() => {});
    throw error;
  }
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError(
    "request_too_large",
    `The request body is larger than ${maxBytes} bytes.`,
  );
}
