import { type Activity, createActivity } from "./administration/activity.ts";
import type { Budgets } from "./administration/budget-records.ts";
import { createBudgets } from "./administration/budgets.ts";
import type { Connections } from "./administration/connection-records.ts";
import { createConnections } from "./administration/connections.ts";
import { createDecisions, type Decisions } from "./administration/decisions.ts";
import { durableLine, orUnavailable } from "./administration/durable-line.ts";
import type { Keys } from "./administration/key-records.ts";
import { createKeys } from "./administration/keys.ts";
import { createSessions, type Sessions } from "./administration/sessions.ts";
import { createSteps, type Steps } from "./administration/steps.ts";
import { chatCompletions } from "./endpoints/chat-completions.ts";
import { createResponse } from "./endpoints/create-response.ts";
import type { Endpoint, EndpointContext } from "./endpoints/endpoint.ts";
import { getModel, listModels } from "./endpoints/models.ts";
import { endpointOf, tailFor } from "./endpoints/routes.ts";
import { deleteResponse, getResponse, listInputItems } from "./endpoints/stored-responses.ts";
import { type GatewayError, toGatewayError } from "./errors/gateway-error.ts";
import type { Answer } from "./http/answer.ts";
import { errorAnswer } from "./http/error-answer.ts";
import { requireSmallHeaders } from "./http/headers.ts";
import { toResponse } from "./http/to-response.ts";
import { createAuthenticator } from "./identity/authenticate.ts";
import { createKeyCache } from "./identity/key-cache.ts";
import { createLastUsed } from "./identity/last-used.ts";
import type { GatewayOptions } from "./options.ts";
import { durable } from "./pipeline/durable.ts";
import { createLifecycle } from "./pipeline/lifecycle.ts";
import { createMaintenance } from "./pipeline/maintenance.ts";
import { recoverSteps } from "./pipeline/recover.ts";
import { sweepResponses } from "./pipeline/sweep.ts";
import { readOptions } from "./read-options.ts";

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

/** A governed model gateway: one handler for every route, and its administration. */
export interface Gateway {
  /**
   * Answers a request to any path that ends in one of the routes after its last `/v1/`. Takes what `fetch` takes, and
   * is bound, so that it can be given to an SDK in place of `fetch`; the second argument after a Request is ignored.
   * Every failure is an answer, except that a caller who aborts gets the rejection `fetch` would give.
   */
  readonly fetch: (input: Request | URL | string, init?: RequestInit) => Promise<Response>;
  /** What a binding uses instead of `fetch`: the same answer before it becomes a `Response`. */
  readonly answer: (request: Request) => Promise<Answer>;
  readonly handlers: Handlers;
  readonly keys: Keys;
  readonly connections: Connections;
  readonly budgets: Budgets;
  readonly activity: Activity;
  readonly steps: Steps;
  readonly sessions: Sessions;
  readonly decisions: Decisions;
  /**
   * Opens the store, brings it up to date and checks it. Runs by itself at the first request.
   * @throws GatewayError `evidence_unavailable` with what the store failed with as `cause`, `overloaded` once closed
   */
  ready(): Promise<void>;
  /** Rejects unless the store is as this release needs it. Changes nothing, where `ready()` would. */
  checkStore(): Promise<void>;
  /** Settles the Steps of processes that are gone, and says how many. Runs by itself while the gateway is open. */
  recover(): Promise<number>;
  /** Removes stored responses that expired, in bounded chunks, and says how many. Runs by itself while the gateway is open. */
  sweep(): Promise<number>;
  /**
   * Stops admitting, waits for running Steps to settle, ends what is still open after `deadlines.drain` with an error,
   * and closes providers and store. Safe to call twice.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Makes a gateway. Opens nothing until it is first used, so it is safe in a build step.
 * @throws GatewayError `invalid_configuration`, naming every problem of the options at once.
 */
export function createGateway<const Providers extends GatewayOptions["providers"]>(
  options: GatewayOptions<keyof Providers & string> & { readonly providers: Providers },
): Gateway {
  const line = readOptions(options);
  const { store, clock, ids } = line;
  const administered = durableLine(line);
  const lastUsed = createLastUsed(store.keys, clock);
  const authenticator = createAuthenticator(
    store.keys,
    createKeyCache(clock),
    clock,
    lastUsed.note,
  );
  const maintenance = createMaintenance(line, { recovers: options.maintenance ?? true });
  const { admit, close, ...lifecycle } = createLifecycle(line, { maintenance, lastUsed });
  const ready = () => orUnavailable(lifecycle.ready());
  const context: EndpointContext = { line, authenticator };

  async function answerTo(request: Request, endpoint: Endpoint | undefined): Promise<Answer> {
    return admit(async (open) => {
      requireSmallHeaders(request.headers, line.limits.headerBytes);
      const found = endpoint ? { endpoint, tail: tailFor(endpoint, request) } : endpointOf(request);
      await durable(open());
      return found.endpoint(context, request, found.tail);
    });
  }

  async function answer(request: Request, endpoint?: Endpoint): Promise<Answer> {
    const requestId = ids.uuid();
    const answered = await answerTo(request, endpoint).catch((thrown: unknown) => {
      if (request.signal?.aborted) throw request.signal.reason;
      const error = toGatewayError(thrown);
      if (error.status === 500 || error.code === "evidence_unavailable")
        tellFailure(error, requestId);
      return errorAnswer(error);
    });
    return { ...answered, headers: { ...answered.headers, "x-request-id": requestId } };
  }

  function tellFailure(error: GatewayError, requestId: string): void {
    const { code } = error;
    line.notify({
      type: "request.failed",
      at: clock.now(),
      requestId,
      code,
      where: whereOf(error.cause),
    });
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
      chatCompletions: handler(chatCompletions),
      createResponse: handler(createResponse),
      getResponse: handler(getResponse),
      deleteResponse: handler(deleteResponse),
      listInputItems: handler(listInputItems),
      listModels: handler(listModels),
      getModel: handler(getModel),
    },
    keys: createKeys(administered, ready),
    connections: createConnections(administered, ready),
    budgets: createBudgets(administered, ready),
    activity: createActivity(administered, ready),
    steps: createSteps(administered, ready),
    sessions: createSessions(administered, ready),
    decisions: createDecisions(administered, ready),
    ready,
    checkStore: () => administered.store.migrate("check"),
    async recover() {
      await ready();
      return recoverSteps(administered);
    },
    async sweep() {
      await ready();
      return sweepResponses(administered);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Where an error was thrown, without its message, which can hold anything. */
function whereOf(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause;
  const frames = (cause.stack ?? "").split("\n").filter((frame) => /^\s+at /.test(frame));
  return [cause.name, ...frames].join("\n");
}
