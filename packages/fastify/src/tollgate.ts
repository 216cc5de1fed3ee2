import { Readable } from "node:stream";
import { GatewayError, type RequestHandlers, requireGateway } from "@tollgate/core";
import {
  type NodeHandlerOptions,
  requireHandlerOptions,
  sendAnswer,
  toRequest,
} from "@tollgate/node";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

/** What `app.register` is given with the plugin. */
export interface TollgateOptions extends NodeHandlerOptions {
  readonly gateway: RequestHandlers;
  /**
   * Where the gateway is mounted, decoded as Fastify matches paths: `/a b` for `/a%20b`. Without it, the gateway
   * answers every path that no other route takes.
   */
  readonly prefix?: string;
}

/**
 * Mounts a gateway on a Fastify app: `await app.register(tollgate, { gateway, prefix: "/ai" })`. It answers everything
 * below its prefix, in a scope of its own: the hooks of the app run, its body parsers do not, since they let a member
 * given twice and bytes that are no UTF-8 through. Headers the app has set on the reply are kept; `onSend` hooks do not
 * see the answer, which goes to the socket as it comes.
 * @throws GatewayError `invalid_configuration` when it is not given a gateway, `writeStall` is no whole number from 1, or
 * the prefix is encoded.
 */
export async function tollgate(scope: FastifyInstance, options: TollgateOptions): Promise<void> {
  const { gateway } = options;
  requireGateway(gateway, "register(tollgate, { gateway })");
  // The options of the plugin come together with Fastify's own.
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
      // An app that closes waits for its connections: one whose answer was open then must not stay alive idle.
      if (closing) incoming.raw.socket.end();
    } catch (error) {
      // Nobody is there to be told of a client that left.
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

/** What the parser of the scope was given: the socket, or what a `preParsing` hook of the app has put in its place. */
function payloadOf({ body, raw }: FastifyRequest): Readable {
  return body instanceof Readable ? body : raw;
}

/** A route that is declared with encoded characters never matches. */
function requireDecoded(prefix: string): void {
  if (!prefix.includes("%")) return;
  throw new GatewayError(
    "invalid_configuration",
    `Fastify matches decoded paths: register the prefix ${prefix} with its characters as they are.`,
  );
}

const unsupportedMediaType = {
  error: {
    message: "The request body must be JSON in UTF-8, sent with `content-type: application/json`.",
    type: "invalid_request_error",
    param: null,
    code: "unsupported_media_type",
  },
};

/**
 * Answers, in the gateway's shape, a content type that Fastify itself refuses. Such a request is not handed to the
 * gateway: the hooks that run after parsing, where an app may check its callers, have not seen it. Every other error
 * is the app's own and goes to its error handler.
 */
function answerParserErrors(
  error: unknown,
  _request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const refused =
    error instanceof Error && "code" in error && error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE";
  if (!refused) throw error;
  return reply.code(415).header("x-should-retry", "false").send(unsupportedMediaType);
}
