import { isUtf8 } from "node:buffer";
import type { Limits } from "../domain/limits.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { isLarge, yieldToEventLoop } from "../kernel/event-loop.ts";
import { guardJson } from "../kernel/json-guard.ts";
import type { JsonFaultKind } from "../kernel/json-rules.ts";
import type { GatewayRequest } from "./gateway-request.ts";
import { requireJsonBody } from "./headers.ts";
import { readBytes } from "./read-bytes.ts";

/** Members that hold JSON Schemas, which are data of the client's own. */
const schemaMembers: ReadonlySet<string> = new Set(["parameters", "schema"]);

/**
 * The bytes of a request's body, which is to be JSON; no more than `limits.imageBodyBytes`.
 * Throws or rejects with a GatewayError: `unsupported_media_type`, `request_too_large`, or `invalid_json` for one that
 * ended early or was read by someone else.
 */
export function readBody(request: GatewayRequest, limits: Limits): Promise<Buffer> {
  requireJsonBody(request.headers);
  return readBytes(request, limits.imageBodyBytes);
}

/**
 * A body as a JSON object, having refused what is not JSON in UTF-8, is too large, nests too deep, or would be read
 * differently by another reader (duplicate keys, lost digits, halves of surrogate pairs). A large one is read with pauses.
 * Throws or rejects with a GatewayError: `request_too_large` or `invalid_json`.
 */
export function parseBody(bytes: Buffer, limits: Limits): object | Promise<object> {
  if (isLarge(bytes.length)) return parseLarge(bytes, limits);
  const text = textOf(bytes, limits);
  requireSound(text, limits);
  return parse(text);
}

async function parseLarge(bytes: Buffer, limits: Limits): Promise<object> {
  const text = textOf(bytes, limits);
  await yieldToEventLoop();
  requireSound(text, limits);
  await yieldToEventLoop();
  const body = parse(text);
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

/** Only images may make a body larger than `bodyBytes`: what is beside their data must fit. */
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

function requireSound(text: string, limits: Limits): void {
  const fault = guardJson(text, {
    depth: limits.depth,
    freeFormDepth: limits.schemaDepth,
    freeForm: schemaMembers,
    keys: limits.keys,
    values: limits.values,
  });
  if (fault === null) return;
  const where = fault.path === "" ? "" : ` (at ${fault.path})`;
  throw invalid(`${faultMessages[fault.kind]}${where}.`);
}

const faultMessages: Readonly<Record<JsonFaultKind, string>> = {
  depth: "The request body nests objects and arrays too deep",
  keys: "An object in the request body has too many members",
  values: "The request body holds too many values",
  "duplicate-key": "An object in the request body has the same member twice",
  "forbidden-key": "The request body has a member whose name is not allowed here",
  number: "The request body holds a number that cannot be kept exactly",
  surrogate: "The request body holds text that is not well-formed Unicode",
};

function parse(text: string): object {
  const body = parsed(text);
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body;
  throw invalid("The request body must be a JSON object.");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's own message quotes the text; only its position may be told.
    const position = /at position (\d+)/.exec(String(error))?.[1];
    const where = position === undefined ? "" : ` (at character ${position})`;
    throw invalid(`The request body is not valid JSON${where}.`);
  }
}

function invalid(message: string): GatewayError {
  return new GatewayError("invalid_json", message);
}
