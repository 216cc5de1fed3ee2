import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayRequest, RequestHeaders } from "./gateway-request.ts";

const bearer = /^bearer ([A-Za-z0-9._~+/-]+=*)$/i;

/** The token of `authorization: Bearer …`; null if the header is missing, repeated or malformed. */
export function bearerToken(headers: RequestHeaders): string | null {
  return bearer.exec(headers.get("authorization") ?? "")?.[1] ?? null;
}

/**
 * Rejects headers whose total size, as sent, is too large.
 * @throws GatewayError `request_too_large`
 */
export function requireSmallHeaders(request: GatewayRequest, headerBytes: number): void {
  const bytes = "headerBytes" in request ? request.headerBytes : bytesOf(request.headers);
  if (bytes > headerBytes)
    throw new GatewayError(
      "request_too_large",
      `The request's headers are larger than ${headerBytes} bytes.`,
    );
}

function bytesOf(headers: RequestHeaders): number {
  let bytes = 0;
  for (const [name, value] of headers) bytes += name.length + value.length + 4;
  return bytes;
}

const json =
  /^application\/json(?:[ \t]*;[ \t]*([\w!#$%&'*+.^`|~-]+)=([\w!#$%&'*+.^`|~-]+|"[^"\\]*"))*[ \t]*;?$/i;
const otherCharset = /;[ \t]*charset=(?!"?utf-?8"?[ \t]*(?:;|$))/i;

/**
 * Rejects a body that is not plain JSON in UTF-8, before reading it.
 * @throws GatewayError `unsupported_media_type`
 */
export function requireJsonBody(headers: RequestHeaders): void {
  const type = headers.get("content-type") ?? "";
  if (!json.test(type) || otherCharset.test(type))
    throw new GatewayError(
      "unsupported_media_type",
      "The request body must be JSON in UTF-8, sent with `content-type: application/json`.",
    );
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity")
    throw new GatewayError(
      "unsupported_media_type",
      "The request body must not be compressed: send it without `content-encoding`.",
    );
}
