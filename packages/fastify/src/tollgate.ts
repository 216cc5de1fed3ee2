import { Readable } from "node:stream";
import { errorBody, GatewayError, type Mountable, requireGateway } from "@tollgate/core";
import {
  type NodeHandlerOptions,
  requireHandlerOptions,
  sendAnswer,
  toRequest,
} from "@tollgate/node";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

/** Options of the plugin for `app.register`. */
export interface TollgateOptions extends NodeHandlerOptions {
  readonly gateway: Mountable;
  /**
   * Where to mount the gateway, decoded as Fastify matches paths: `/a b` for `/a%20b`. Without a prefix, the gateway answers
   * every path that has no other route.
   */
  readonly prefix?: string;
}

/**
 * Mounts a gateway on a Fastify app: `await app.register(tollgate, { gateway, prefix: "/ai" })`. It answers everything
 * below its prefix in its own scope. The app's hooks run. Its body parsers don't, because they accept repeated members
 * and invalid UTF-8. Headers that the app set on the reply are kept. `onSend` hooks don't see the answer, which goes
 * directly to the socket.
 * @throws GatewayError `invalid_configuration` without a gateway, if `writeStall` isn't a positive integer, or if the
 * prefix is encoded
 */
export async function tollgate(scope: FastifyInstance, options: TollgateOptions): Promise<void> {
  const { gateway } = options;
  requireGateway(gateway, "register(tollgate, { gateway })");
  // Fastify passes its own options in the same object.
  const { writeStall } = requireHandlerOptions(
    options.writeStall === undefined ? {} : { writeStall: options.writeStall },
  );
  requireDecoded(scope.prefix);
  let closing = false;
  scope.addHook("preClose", async () => {
    closing = true;
  });

  const handle = async (incoming: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const request = toRequest(incoming.raw, reply.raw, payloadOf(incoming));
    try {
      const answer = await gateway.answer(request);
      reply.hijack();
      for (const [name, value] of Object.entries(reply.getHeaders()))
        if (value !== undefined) reply.raw.setHeader(name, value);
      await sendAnswer(reply.raw, answer, writeStall);
      // A closing app waits for its connections, so this one must not stay open idle.
      if (closing) incoming.raw.socket.end();
    } catch (error) {
      // A client that disconnected needs no error reply.
      if (request.signal.aborted) return void reply.hijack();
      throw error;
    }
  };

  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  scope.setErrorHandler(answerParserErrors);
  scope.all("/", handle);
  scope.all("/*", handle);
}

/** Returns the payload from the scope's parser: the socket, or the stream of a `preParsing` hook. */
function payloadOf({ body, raw }: FastifyRequest): Readable {
  return body instanceof Readable ? body : raw;
}

/** Fastify never matches a route with encoded characters. */
function requireDecoded(prefix: string): void {
  if (!prefix.includes("%")) return;
  throw new GatewayError(
    "invalid_configuration",
    `Fastify matches decoded paths: decode the prefix ${prefix}.`,
  );
}

const unsupportedMediaType = new GatewayError(
  "unsupported_media_type",
  "The request body must be JSON in UTF-8, sent with `content-type: application/json`.",
);

/**
 * Answers an unsupported content type in the gateway's error format. The request doesn't reach the gateway: the app's
 * hooks after parsing, which may check callers, haven't run. Other errors go to the app's error handler.
 */
function answerParserErrors(
  error: unknown,
  _request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const refused =
    error instanceof Error && "code" in error && error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE";
  if (!refused) throw error;
  const { status, headers } = unsupportedMediaType;
  return reply
    .code(status)
    .headers(headers)
    .type("application/json")
    .send(errorBody(unsupportedMediaType));
}
