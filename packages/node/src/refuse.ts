import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { errorBody } from "@tollgate/core";

/** Errors that the server itself responds with, without the gateway. */
const refusals = {
  internal_error: {
    status: "500 Internal Server Error",
    type: "server_error",
    message: "The gateway failed to handle this request.",
    headers: {},
  },
  overloaded: {
    status: "503 Service Unavailable",
    type: "server_error",
    message: "The server is shutting down.",
    headers: { "retry-after": "1", "x-should-retry": "true" },
  },
  invalid_request: {
    status: "400 Bad Request",
    type: "invalid_request_error",
    message: "The bytes received are not an HTTP request.",
    headers: { "x-should-retry": "false" },
  },
  headers_too_large: {
    status: "431 Request Header Fields Too Large",
    type: "invalid_request_error",
    message: "The request headers are too large.",
    headers: { "x-should-retry": "false" },
  },
  request_timeout: {
    status: "408 Request Timeout",
    type: "invalid_request_error",
    message: "The request took too long to arrive.",
    headers: {},
  },
} as const;

type RefusalCode = keyof typeof refusals;

/** Sends an error in the gateway's format and closes the connection. */
export function refuse(outgoing: ServerResponse, code: RefusalCode): void {
  const { status, headers } = refusals[code];
  outgoing.writeHead(Number.parseInt(status, 10), { ...jsonHeaders, ...headers });
  outgoing.end(body(code));
}

/** Sends an error on a connection whose bytes aren't a valid request. */
export function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const code = codeOf(error.code);
  // Clients connect ahead of a request. One that is sent just now would take the 408 for its answer.
  if (code === "request_timeout" && socket.bytesRead === 0) return void socket.destroy();
  const { status, headers } = refusals[code];
  const text = body(code);
  const lines = Object.entries({
    ...jsonHeaders,
    ...headers,
    "content-length": Buffer.byteLength(text),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  const destroy = (): void => void socket.destroy();
  socket.end(`HTTP/1.1 ${status}\r\n${lines.join("")}\r\n${text}`, destroy);
}

const jsonHeaders = { "content-type": "application/json", connection: "close" } as const;

function codeOf(code: string | undefined): RefusalCode {
  if (code === "HPE_HEADER_OVERFLOW") return "headers_too_large";
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? "request_timeout" : "invalid_request";
}

function body(code: RefusalCode): string {
  return errorBody({ ...refusals[code], param: null, wireCode: code });
}
