import { isTraceParent } from "../contracts/observer.ts";
import type { Owner } from "../domain/caller.ts";
import { errorBody, type GatewayError, toGatewayError, whereOf } from "../errors/gateway-error.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import { errorAnswer, type GatewayResponse, toResponse } from "../http/gateway-response.ts";
import { requireSmallHeaders } from "../http/headers.ts";
import { toRequest } from "../http/to-request.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { DecidedError } from "../pipeline/decision-headers.ts";
import type { Lifecycle } from "../pipeline/process.ts";
import { orUnavailable } from "../pipeline/store-calls.ts";
import { messagesErrorBody } from "../wire/messages/error-body.ts";
import { getKey } from "./calling-key.ts";
import { chatCompletions } from "./chat-completions.ts";
import { createResponse } from "./create-response.ts";
import { createEmbeddings } from "./embeddings.ts";
import type { EndpointHandler, HandlerDependencies, RequestReport } from "./endpoint.ts";
import { countMessageTokens, createMessage } from "./messages.ts";
import { getModel, listModels } from "./models.ts";
import { endpointOf, isMessagesPath, tailFor } from "./routes.ts";
import { deleteResponse, getResponse, listInputItems } from "./stored-responses.ts";

/** Answers a web request. */
export type Handler = (request: Request) => Promise<Response>;

/** A gateway's handlers by name, for hosts with their own router. */
export interface EndpointHandlers {
  readonly chatCompletions: Handler;
  readonly createResponse: Handler;
  readonly createMessage: Handler;
  readonly countMessageTokens: Handler;
  readonly createEmbeddings: Handler;
  readonly getResponse: Handler;
  readonly deleteResponse: Handler;
  readonly listInputItems: Handler;
  readonly listModels: Handler;
  readonly getModel: Handler;
  readonly getKey: Handler;
}

/** Anything that bindings can mount: a gateway, the result of `gateway.as`, or the admin API. */
export interface Mountable {
  /**
   * Answers a request to any path that ends in one of the routes. It has the signature of `fetch` and is bound, so you can
   * pass it to an SDK, or to a server such as Bun's that passes itself as the second argument. Every failure becomes an
   * answer, except if the caller aborts: then it rejects as `fetch` does.
   */
  readonly fetch: (input: Request | URL | string, init?: RequestInit) => Promise<Response>;
  /**
   * Used by bindings instead of `fetch`: takes the server's own request, and returns the answer before it becomes a
   * `Response`.
   */
  readonly answer: (request: GatewayRequest) => Promise<GatewayResponse>;
}

/** The ways into a gateway: for bindings, for routers, and for SDKs that take a `fetch`. */
export interface RequestHandlers extends Mountable {
  readonly handlers: EndpointHandlers;
}

export function createRequestHandlers(
  dependencies: HandlerDependencies,
  gate: Pick<Lifecycle, "open" | "enter" | "leave">,
): RequestHandlers {
  const { context } = dependencies;

  /** Calls the endpoint. Never throws; rejects instead. */
  function callEndpoint(
    request: GatewayRequest,
    endpoint: EndpointHandler | null,
    report: Report,
  ): Promise<GatewayResponse> {
    try {
      gate.enter();
      report.isAdmitted = true;
      report.endpoint = endpoint;
      requireSmallHeaders(request, context.limits.headerBytes);
      const target = endpoint
        ? { endpoint, tail: tailFor(endpoint, request) }
        : endpointOf(request);
      report.endpoint = target.endpoint;
      const scope = { ...dependencies, report };
      const opening = gate.open();
      return opening === null
        ? target.endpoint(scope, request, target.tail)
        : orUnavailable(opening).then(() => target.endpoint(scope, request, target.tail));
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  }

  function answer(
    request: GatewayRequest,
    endpoint: EndpointHandler | null,
  ): Promise<GatewayResponse> {
    const report = new Report(context);
    if (context.isObserved()) report.received(request);
    return callEndpoint(request, endpoint, report).then(
      (answered) => {
        gate.leave();
        if (context.isObserved()) report.answered(answered.status, null);
        return report.withRequestId(answered);
      },
      (thrown: unknown) => {
        if (report.isAdmitted) gate.leave();
        if (request.signal?.aborted) {
          report.answered(clientClosed.status, clientClosed.code);
          throw request.signal.reason;
        }
        const error = toGatewayError(thrown);
        report.failed(error);
        report.answered(error.status, error.code);
        const body = report.speaksMessages(request)
          ? messagesErrorBody(error, report.requestId)
          : errorBody(error);
        const refused = report.withRequestId(errorAnswer(error, body));
        // A caller in this process that asks again at once would keep the event loop busy, and the gateway overloaded.
        return mayRepeat(error) ? yieldToEventLoop().then(() => refused) : refused;
      },
    );
  }

  const handler =
    (endpoint: EndpointHandler): Handler =>
    async (request) =>
      toResponse(await answer(request, endpoint));

  return {
    fetch: async (input, init) => toResponse(await answer(toRequest(input, init), null)),
    answer: (request) => answer(request, null),
    handlers: {
      chatCompletions: handler(endpoints.chatCompletions),
      createResponse: handler(endpoints.createResponse),
      createMessage: handler(endpoints.createMessage),
      countMessageTokens: handler(endpoints.countMessageTokens),
      createEmbeddings: handler(endpoints.createEmbeddings),
      getResponse: handler(endpoints.getResponse),
      deleteResponse: handler(endpoints.deleteResponse),
      listInputItems: handler(endpoints.listInputItems),
      listModels: handler(endpoints.listModels),
      getModel: handler(endpoints.getModel),
      getKey: handler(endpoints.getKey),
    },
  };
}

/** The end of a request whose client left before its answer began. Nobody receives it. */
const clientClosed = { status: 499, code: "client_closed" } as const;

const endpoints: Readonly<Record<keyof EndpointHandlers, EndpointHandler>> = {
  chatCompletions,
  createResponse,
  createMessage,
  countMessageTokens,
  createEmbeddings,
  getResponse,
  deleteResponse,
  listInputItems,
  listModels,
  getModel,
  getKey,
};

class Report implements RequestReport {
  readonly requestId: string;
  isAdmitted = false;
  endpoint: EndpointHandler | null = null;
  caller: Owner | null = null;
  readonly #context: GatewayContext;
  readonly #startedAt: number;

  constructor(context: GatewayContext) {
    this.#context = context;
    this.requestId = context.ids.uuid();
    this.#startedAt = context.isObserved() ? context.clock.monotonic() : 0;
  }

  received({ headers }: GatewayRequest): void {
    const { clock, notify } = this.#context;
    const sent = headers.get("traceparent");
    notify({
      type: "request.received",
      at: clock.now(),
      requestId: this.requestId,
      traceparent: isTraceParent(sent) ? sent : null,
    });
  }

  /** Reports an answer's status, before its body. */
  answered(status: number, code: string | null): void {
    const { clock, notify } = this.#context;
    const durationMs = Math.round(clock.monotonic() - this.#startedAt);
    notify({ type: "request.answered", ...this.#facts(), status, code, durationMs });
  }

  /** Adds the request's id to the answer's headers, and under the name that clients of the Messages API read. */
  withRequestId(answer: GatewayResponse): GatewayResponse {
    answer.headers["x-request-id"] = this.requestId;
    if (this.#isOfMessages()) answer.headers["request-id"] = this.requestId;
    return answer;
  }

  /** Whether an error has the form of the Messages API: on its paths, whatever the path or the method lacks. */
  speaksMessages({ url }: GatewayRequest): boolean {
    return this.#isOfMessages() || isMessagesPath(url);
  }

  #isOfMessages(): boolean {
    return this.endpoint === createMessage || this.endpoint === countMessageTokens;
  }

  failed(error: GatewayError): void {
    const { notify } = this.#context;
    const { code, status, param, cause } = error;
    const failed = { ...this.#facts(), code, status };
    const { at, requestId } = failed;
    if (isInternal(error))
      notify({ type: "request.failed", at, requestId, code, where: whereOf(cause) });
    const { decisionId, stepId } =
      error instanceof DecidedError ? error : { decisionId: null, stepId: null };
    if (decisionId === null && status < 500) notify({ type: "request.refused", ...failed, param });
    notify({ type: "answer.failed", ...failed, decisionId, stepId });
  }

  #facts() {
    const { requestId, caller } = this;
    const names = Object.entries(endpoints);
    return {
      at: this.#context.clock.now(),
      requestId,
      endpoint: names.find(([, named]) => named === this.endpoint)?.[0] ?? null,
      organizationId: caller?.organizationId ?? null,
      keyId: caller?.keyId ?? null,
    };
  }
}

/** Whether a client is likely to ask again: the same request may succeed later. */
function mayRepeat({ status }: GatewayError): boolean {
  return status === 429 || status === 503;
}

/** Whether the gateway, its store or its host caused the failure. */
function isInternal({ status, code }: GatewayError): boolean {
  return status === 500 || code === "evidence_unavailable" || code === "authentication_unavailable";
}
