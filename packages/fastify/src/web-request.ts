import { Readable } from "node:stream";
import { toRequest } from "@tollgate/node";
import type { FastifyReply, FastifyRequest } from "fastify";

/**
 * The web `Request` of a Fastify request. Its body is what the parser of the scope was given: the socket, or what a
 * `preParsing` hook of the app has put in its place, which has neither the encoding nor the length of what was sent.
 */
export function webRequest(incoming: FastifyRequest, reply: FastifyReply): Request {
  const request = toRequest(incoming.raw, reply.raw);
  const payload: unknown = incoming.body;
  if (payload === incoming.raw || !(payload instanceof Readable)) return request;
  const headers = new Headers(request.headers);
  for (const name of ["content-encoding", "content-length", "transfer-encoding"])
    headers.delete(name);
  return new Request(request.url, {
    method: request.method,
    headers,
    body: ReadableStream.from(payload),
    duplex: "half",
    signal: request.signal,
  });
}
