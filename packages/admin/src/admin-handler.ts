import {
  type Administration,
  type Clock,
  createRandomIds,
  type ErrorCode,
  GatewayError,
  type GatewayRequest,
  type GatewayResponse,
  type Mountable,
  systemClock,
} from "@tollgate/core";
import {
  administrationFailure,
  type BodyRoom,
  defaultLimits,
  parseBody,
  queryOf,
  readBody,
  requireSmallHeaders,
  toRequest,
  toResponse,
  whereOf,
} from "@tollgate/core/administration";
import { type AdminGrant, organizationOf, requirePlatform, requireRole } from "./grant.ts";
import { busy, createSignInGuard, createSlots, overloaded, requireSameOrigin } from "./guards.ts";
import { openApiDocument } from "./open-api.ts";
import { operations } from "./operations.ts";
import { decodeQuery, headerParameters } from "./parameters.ts";
import { json, present, tagIn } from "./present.ts";
import { createRouter, type MatchedRoute } from "./router.ts";
import { type AuthenticateAdmin, signIn } from "./sign-in.ts";
import { createTurns, resting } from "./turns.ts";

/** Options of the admin API. */
export interface AdminOptions {
  /** Says who is signed in and what they may do. It has no default: without it, nothing is served. */
  readonly authenticateAdmin: AuthenticateAdmin;
  /**
   * The address that failed sign-ins are counted by; null for none. Default: the connection's, where the binding knows it.
   * Behind a proxy, read the header that only your proxy sets.
   */
  readonly clientAddress?: (request: GatewayRequest) => string | null;
  /** Called for each request that fails, to log it. Nothing else records these failures. */
  readonly onFailure?: (failure: AdminFailure) => void;
  /** Default: the machine's own clock. */
  readonly clock?: Clock;
}

/** A request to the admin API that got an error, or an export that broke off. */
export interface AdminFailure {
  /** The `x-request-id` of the answer. */
  readonly requestId: string;
  /** In milliseconds since the epoch. */
  readonly at: number;
  /** The name of the operation, such as `keys.create`; null for an unknown path. */
  readonly operation: string | null;
  readonly status: number;
  readonly code: ErrorCode;
  /** The name and stack of the exception that caused the failure, without its message; null if there is none. */
  readonly where: string | null;
}

/** The admin API, which you mount like a gateway: `tollgate(admin)`. */
export interface AdminHandler extends Mountable {
  /** Rejects new requests, and waits up to 25 seconds for open requests and exports. Leaves the gateway open. */
  close(): Promise<void>;
}

const maxOpenRequests = 64;
const maxCloseMs = 25_000;
/** A body holds one record, or the prices of a repricing. */
const limits = { ...defaultLimits, bodyBytes: 1_048_576, imageBodyBytes: 1_048_576 };
/** Open requests are bounded, and so is each body. */
const room: BodyRoom = { admit() {}, grow() {} };

/**
 * Serves a gateway's administration over HTTP, below `/admin/v1`. Mount it like a gateway: with `tollgate(admin)` in Express,
 * Fastify or Next, or with its `fetch`.
 * @throws GatewayError `invalid_configuration` without `authenticateAdmin`
 */
export function adminHandler(administration: Administration, options: AdminOptions): AdminHandler {
  const { authenticateAdmin, clientAddress = connectionAddress, clock = systemClock } = options;
  if (typeof authenticateAdmin !== "function")
    throw new GatewayError(
      "invalid_configuration",
      "adminHandler(gateway, { authenticateAdmin }) needs a function that says who is signed in.",
    );
  const route = createRouter(operations);
  const ids = createRandomIds();
  const signIns = createSignInGuard(clock);
  const slots = createSlots(clock, onEnd);
  const takeTurn = createTurns(clock);
  let document: ReturnType<typeof openApiDocument> | undefined;
  const describe = () => {
    document ??= openApiDocument();
    return document;
  };
  let open = 0;
  let closed: PromiseWithResolvers<void> | null = null;
  const isIdle = () => open === 0 && !slots.isReading();
  function onEnd(): void {
    if (isIdle()) closed?.resolve();
  }

  async function respond(request: GatewayRequest, failures: Failures): Promise<GatewayResponse> {
    requireSmallHeaders(request, limits.headerBytes);
    const matched = route(request.method, request.url);
    failures.operation = matched.name;
    requireSameOrigin(request);
    slots.requireFree(matched.route);
    const grant = await signIns.signIn(clientAddress(request), () =>
      signIn(clock, authenticateAdmin, request),
    );
    requireRole(grant, matched.route.role);
    if (matched.route.platform) requirePlatform(grant);
    const input = await readInput(request, matched, grant);
    const { route: operation } = matched;
    const release = slots.take(operation, grant);
    const run = (target: Administration) => operation.run(target, input, grant, describe);
    try {
      const outcome = await (operation.method === "GET"
        ? takeTurn((rest) => run(resting(administration, rest)))
        : run(administration));
      const { report } = failures;
      return await present(request, operation, outcome, { release, report, takeTurn });
    } catch (thrown) {
      release();
      throw thrown;
    }
  }

  async function answer(request: GatewayRequest): Promise<GatewayResponse> {
    const isAdmitted = closed === null && (open < maxOpenRequests || signIns.makeRoom());
    if (isAdmitted) open++;
    const requestId = ids.uuid();
    const failures = failuresOf(requestId, options, clock);
    const headers = {
      "x-request-id": requestId,
      "cache-control": "private, no-store",
      "x-content-type-options": "nosniff",
    };
    try {
      if (!isAdmitted) throw overloaded(busy);
      const answered = await respond(request, failures);
      return { ...answered, headers: { ...answered.headers, ...headers } };
    } catch (thrown) {
      if (request.signal.aborted) throw request.signal.reason;
      failures.report(thrown);
      const failure = administrationFailure(thrown);
      return {
        status: failure.status,
        headers: { ...failure.headers, ...json, ...headers },
        body: failure.body,
      };
    } finally {
      if (isAdmitted) open--;
      onEnd();
    }
  }

  return {
    answer,
    fetch: async (input, init) => toResponse(await answer(toRequest(input, init))),
    async close() {
      closed ??= Promise.withResolvers<void>();
      const { promise, resolve } = closed;
      if (isIdle()) return;
      const cancel = clock.after(maxCloseMs, resolve);
      await promise;
      cancel();
    },
  };
}

/** Reports the failure of one request to the host. */
interface Failures {
  /** Null until the request's path is known. */
  operation: string | null;
  readonly report: (thrown: unknown) => void;
}

function failuresOf(
  requestId: string,
  { onFailure = () => {} }: Pick<AdminOptions, "onFailure">,
  clock: Clock,
): Failures {
  const failures: Failures = {
    operation: null,
    report(thrown) {
      const { status, code } = administrationFailure(thrown);
      const cause = thrown instanceof GatewayError ? thrown.cause : thrown;
      const where = cause === undefined ? null : whereOf(cause);
      const { operation } = failures;
      const note = async () =>
        onFailure({ requestId, at: clock.now(), operation, status, code, where });
      // A log that fails changes no answer, even if it is async.
      note().catch(() => {});
    },
  };
  return failures;
}

/** The parameters of a request: those of its path, and those of its query or its body. */
async function readInput(
  request: GatewayRequest,
  { route, pathParameters }: MatchedRoute,
  grant: AdminGrant,
): Promise<Readonly<Record<string, unknown>>> {
  if (request.url.length > limits.headerBytes)
    throw new GatewayError("request_too_large", "The request's URL is too long.");
  const query = queryOf(request.url);
  const sent =
    route.method === "POST" ? await bodyOf(request, query) : decodeQuery(query, route.input);
  const input = new Map<string, unknown>(sent);
  for (const [name, value] of pathParameters) {
    if (input.has(name)) throw unknownParameter(name, "is part of the path");
    input.set(name, value);
  }
  if (input.has("actor")) throw unknownParameter("actor", "is who signed in");
  for (const { name, header } of headerParameters) {
    if (input.has(name)) throw unknownParameter(name, `is sent in the header ${header}`);
    const value = request.headers.get(header.toLowerCase());
    if (value === null) continue;
    if (!(name in route.input))
      throw invalidHeader(
        header,
        `This operation doesn't take \`${header}\`: leave the header out.`,
      );
    input.set(name, name === "ifMatch" ? expectedTag(value) : value);
  }
  if (route.replaces !== null && !input.has("ifMatch"))
    throw new GatewayError(
      "precondition_required",
      "This operation replaces what the record holds: send the `ETag` of the record as `If-Match`.",
      { param: "If-Match" },
    );
  if ("organizationId" in route.input) nameOrganization(input, grant);
  return Object.fromEntries(input);
}

/** The tag that a change expects its record to have. */
function expectedTag(header: string): string {
  const tag = tagIn(header);
  if (tag !== null) return tag;
  throw invalidHeader("If-Match", "`If-Match` must be the `ETag` of one record.");
}

function invalidHeader(header: string, message: string): GatewayError {
  return new GatewayError("invalid_argument", message, { param: header });
}

async function bodyOf(
  request: GatewayRequest,
  query: URLSearchParams,
): Promise<ReadonlyMap<string, unknown>> {
  const [misplaced] = query.keys();
  if (misplaced !== undefined) throw unknownParameter(misplaced, "belongs in the JSON body");
  const bytes = await readBody(request, { limits }, room);
  return new Map(bytes.length === 0 ? [] : Object.entries(await parseBody(bytes, limits)));
}

/** Replaces the named organization with one that the grant is for. */
function nameOrganization(input: Map<string, unknown>, grant: AdminGrant): void {
  const named = input.get("organizationId");
  // The schema rejects anything else.
  if (named === undefined || typeof named === "string")
    input.set("organizationId", organizationOf(grant, named));
}

function unknownParameter(name: string, why: string): GatewayError {
  const message = `Unknown parameter: ${name}. It ${why}.`;
  return new GatewayError("unknown_parameter", message, { param: name });
}

function connectionAddress(request: GatewayRequest): string | null {
  return "remoteAddress" in request ? (request.remoteAddress ?? null) : null;
}
