import type { FastifyReply, FastifyRequest } from "fastify";

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
export function answerParserErrors(
  error: unknown,
  _request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const refused =
    error instanceof Error && "code" in error && error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE";
  if (!refused) throw error;
  return reply.code(415).header("x-should-retry", "false").send(unsupportedMediaType);
}
