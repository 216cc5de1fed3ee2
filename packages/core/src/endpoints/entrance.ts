import { type GatewayError, toGatewayError } from "../errors/gateway-error.ts";
import type { Answer } from "../http/answer.ts";
import { errorAnswer } from "../http/error-answer.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import { requireSmallHeaders } from "../http/headers.ts";
import { toResponse } from "../http/to-response.ts";
import { durable } from "../pipeline/durable.ts";
import type { Lifecycle } from "../pipeline/lifecycle.ts";
import type { Line } from "../pipeline/line.ts";
import { DecidedError } from "../pipeline/with-decision.ts";
import { chatCompletions } from "./chat-completions.ts";
import { createResponse } from "./create-response.ts";
import type { Endpoint, EntranceContext, RequestReport } from "./endpoint.ts";
import { getModel, listModels } from "./models.ts";
import { endpointOf, tailFor } from "./routes.ts";
import { deleteResponse, getResponse, listInputItems } from "./stored-responses.ts";

/** Answers a web request. */
export type Handler = (request: Request) => Promise<Response>;

/** The handlers of a gateway by name, for hosts that route by themselves. */
export interface Handlers {
  readonly chatCompletions: Handler;
  readonly createResponse: Handler;
  readonly getResponse: Handler;
  readonly deleteResponse: Handler;
  readonly listInputItems: Handler;
  readonly listModels: Handler;
  readonly getModel: Handler;
}

/** Where requests come in: what bindings mount, and what SDKs take in place of `fetch`. */
export interface Entrance {
  /**
   * Answers a request to any path that ends in one of the routes after its last `/v1/`. Takes what `fetch` takes, and
   * is bound, so that it can be given to an SDK in place of `fetch`; the second argument after a Request is ignored.
   * Every failure is an answer, except that a caller who aborts gets the rejection `fetch` would give.
   */
  readonly fetch: (input: Request | URL | string, init?: RequestInit) => Promise<Response>;
  /** What a binding uses instead of `fetch`: it takes its server's own request, and gives the answer as it is written. */
  readonly answer: (request: GatewayRequest) => Promise<Answer>;
  readonly handlers: Handlers;
}

export function createEntrance(context: EntranceContext, admit: Lifecycle["admit"]): Entrance {
  const { line } = context;

  async function answerTo(
    request: GatewayRequest,
    endpoint: Endpoint | undefined,
    report: Report,
  ): Promise<Answer> {
    return admit(async (open) => {
      report.endpoint = endpoint ?? null;
      requireSmallHeaders(request.headers, line.limits.headerBytes);
      const found = endpoint ? { endpoint, tail: tailFor(endpoint, request) } : endpointOf(request);
      report.endpoint = found.endpoint;
      await durable(open());
      return found.endpoint({ ...context, report }, request, found.tail);
    });
  }

  async function answer(request: GatewayRequest, endpoint?: Endpoint): Promise<Answer> {
    const requestId = line.ids.uuid();
    const report = reportOf(line, requestId);
    const answered = await answerTo(request, endpoint, report).catch((thrown: unknown) => {
      if (request.signal?.aborted) throw request.signal.reason;
      const error = toGatewayError(thrown);
      report.failed(error);
      return errorAnswer(error);
    });
    return { ...answered, headers: { ...answered.headers, "x-request-id": requestId } };
  }

  const handler =
    (endpoint: Endpoint): Handler =>
    async (request) =>
      toResponse(await answer(request, endpoint));

  return {
    fetch: async (input, init) =>
      toResponse(await answer(input instanceof Request ? input : new Request(input, init))),
    answer: (request) => answer(request),
    handlers: {
      chatCompletions: handler(endpoints.chatCompletions),
      createResponse: handler(endpoints.createResponse),
      getResponse: handler(endpoints.getResponse),
      deleteResponse: handler(endpoints.deleteResponse),
      listInputItems: handler(endpoints.listInputItems),
      listModels: handler(endpoints.listModels),
      getModel: handler(endpoints.getModel),
    },
  };
}

const endpoints: Readonly<Record<keyof Handlers, Endpoint>> = {
  chatCompletions,
  createResponse,
  getResponse,
  deleteResponse,
  listInputItems,
  listModels,
  getModel,
};

interface Report extends RequestReport {
  endpoint: Endpoint | null;
}

function reportOf(line: Line, requestId: string): Report {
  return {
    endpoint: null,
    caller: null,
    failed(error) {
      if (isOurs(error)) tellFailure(line, error, requestId);
      const { code, status } = error;
      const names = Object.entries(endpoints);
      const failed = {
        at: line.clock.now(),
        requestId,
        code,
        status,
        endpoint: names.find(([, endpoint]) => endpoint === this.endpoint)?.[0] ?? null,
        organizationId: this.caller?.organizationId ?? null,
        keyId: this.caller?.keyId ?? null,
      };
      const { decisionId, stepId } =
        error instanceof DecidedError ? error : { decisionId: null, stepId: null };
      if (decisionId === null && status < 500)
        line.notify({ type: "request.refused", ...failed, param: error.param });
      line.notify({ type: "answer.failed", ...failed, decisionId, stepId });
    },
  };
}

/** Whether a request failed by the fault of the gateway, its store or its host. */
function isOurs({ status, code }: GatewayError): boolean {
  return status === 500 || code === "evidence_unavailable" || code === "authentication_unavailable";
}

function tellFailure({ clock, notify }: Line, error: GatewayError, requestId: string): void {
  const { code, cause } = error;
  notify({ type: "request.failed", at: clock.now(), requestId, code, where: whereOf(cause) });
}

/** Where an error was thrown, without its message, which can hold anything. */
function whereOf(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause;
  const frames = (cause.stack ?? "").split("\n").filter((frame) => /^\s+at /.test(frame));
  return [cause.name, ...frames].join("\n");
}
