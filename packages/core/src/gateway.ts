import { createActivity } from "./administration/activity.ts";
import { type AdminTokenRecord, createAdminTokens } from "./administration/admin-tokens.ts";
import type { Administration } from "./administration/administration.ts";
import { createBudgets } from "./administration/budgets.ts";
import { createChanges } from "./administration/changes.ts";
import { createConfigured } from "./administration/configured.ts";
import { createConnections } from "./administration/connections.ts";
import { createDecisions } from "./administration/decisions.ts";
import { createEvidence, type Evidence } from "./administration/evidence.ts";
import { createKeys, ensureKey } from "./administration/keys.ts";
import { withStoreErrors } from "./administration/method.ts";
import { createRateLimits } from "./administration/rate-limits.ts";
import { createSessions } from "./administration/sessions.ts";
import { createSteps } from "./administration/steps.ts";
import { reconcileUsage } from "./administration/usage-reconciliation.ts";
import type { HostCaller } from "./contracts/authenticate.ts";
import type { Observer } from "./contracts/observer.ts";
import { createConversations } from "./endpoints/endpoint.ts";
import { createIdentify } from "./endpoints/identify.ts";
import {
  createRequestHandlers,
  type Mountable,
  type RequestHandlers,
} from "./endpoints/request-handlers.ts";
import { GatewayError } from "./errors/gateway-error.ts";
import { createAuthenticator } from "./identity/authenticate.ts";
import { createKeyCache } from "./identity/key-cache.ts";
import { createLastUsed } from "./identity/last-used.ts";
import { readCaller } from "./identity/named-caller.ts";
import type { GatewayOptions } from "./options.ts";
import {
  createHealthCheck,
  createStatus,
  type GatewayStatus,
  type Health,
} from "./pipeline/health.ts";
import {
  type CloseOptions,
  createLifecycle,
  createMaintenance,
  recoverSteps,
  rollUp,
  sweep,
} from "./pipeline/process.ts";
import { readOptions } from "./read-options.ts";

/** A governed model gateway: one handler for every route, and its administration. */
export interface Gateway extends RequestHandlers, Administration {
  /**
   * Returns the gateway for one caller, such as a signed-in user or a job of the host. It needs no API key and ignores an
   * Authorization header. Cheap enough to call for each request. The first request creates a key record without a secret for
   * the organization, user and label. Ownership, activity and budgets use this record, and revoking it blocks the caller.
   * @throws GatewayError `invalid_argument` with every problem of the caller
   */
  readonly as: (caller: HostCaller) => RequestHandlers;
  /** Adds an observer, as `observers` does. The returned function removes it. */
  readonly observe: (observer: Observer) => () => void;
  /**
   * Opens the store, migrates it and checks it, and records a change of policy. Runs automatically at the first request.
   * @throws GatewayError `evidence_unavailable` with the store's error as `cause`, or `overloaded` after `close`
   */
  ready(): Promise<void>;
  /**
   * Whether this process should get requests, for a load balancer's check. Opens the store if nothing has yet. Asks it at most
   * every five seconds and waits at most one. Never rejects.
   */
  readonly health: () => Promise<Health>;
  /** How busy this process is now. Reads counters in memory, so it is cheap enough for every scrape. */
  readonly status: () => GatewayStatus;
  /** Seals the evidence into signed logs, and verifies them. */
  readonly evidence: Evidence;
  /** Rejects unless the store has the schema of this release. Unlike `ready()`, it changes nothing. */
  checkStore(): Promise<void>;
  /**
   * The token for the admin API with this secret; null if it is unknown, revoked or expired. Notes its use.
   * `tokenSignIn` of `@tollgate/admin` calls it.
   */
  findAdminToken(secret: string): Promise<AdminTokenRecord | null>;
  /**
   * Adds the Steps of past hours to the hourly sums that summaries read, and returns their number. Runs automatically while
   * the gateway is open. Several processes can run it at once.
   */
  rollUp(): Promise<number>;
  /**
   * Rejects new requests, waits for running Steps to settle, ends the remaining ones with an error, and closes providers
   * and store. All of it takes at most `within`, or `deadlines.close` (25 s). Recovery settles Steps that take longer.
   * Safe to call twice: a call with a shorter bound ends it sooner.
   * @throws GatewayError `invalid_argument` if `within` isn't a duration
   */
  close(options?: CloseOptions): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Creates a gateway. It opens nothing until its first use, so it is safe in a build step.
 * @throws GatewayError `invalid_configuration` with every problem of the options, or on an older Node
 */
export function createGateway<const Providers extends GatewayOptions["providers"]>(
  options: GatewayOptions<keyof Providers & string> & { readonly providers: Providers },
): Gateway {
  requireRuntime();
  const context = readOptions(options);
  const { store, clock } = context;
  const lastUsed = createLastUsed(store.keys, clock);
  const authenticator = createAuthenticator({
    keys: store.keys,
    cache: createKeyCache(clock),
    clock,
    dataClasses: context.dataClasses,
    ensure: (named) => ensureKey(context, named),
    used: lastUsed.note,
  });
  const maintenance = createMaintenance(context, { recovers: options.maintenance ?? true });
  const lifecycle = createLifecycle(context, { maintenance, lastUsed });
  const opened = () => withStoreErrors(lifecycle.opened());
  const dependencies = {
    context,
    authenticator,
    identify: createIdentify(context, options.authenticate),
    conversations: createConversations(context.limits),
  };

  return {
    ...createRequestHandlers(dependencies, lifecycle),
    as(caller) {
      const credential = { named: readCaller(caller, context.dataClasses) };
      return createRequestHandlers({ ...dependencies, identify: () => credential }, lifecycle);
    },
    keys: createKeys(context, opened),
    connections: createConnections(context, opened),
    budgets: createBudgets(context, opened),
    rateLimits: createRateLimits(context, opened),
    ...createAdminTokens(context, opened),
    activity: createActivity(context, opened),
    steps: createSteps(context, opened),
    sessions: createSessions(context, opened),
    changes: createChanges(context, opened),
    ...createConfigured(context),
    decisions: createDecisions(context, opened),
    evidence: createEvidence(context, opened),
    observe: context.observe,
    ready: () => withStoreErrors(lifecycle.ready()),
    health: createHealthCheck(context, lifecycle, maintenance),
    status: createStatus(context, lifecycle, maintenance),
    checkStore: () => withStoreErrors(store.migrate("check")),
    async recover() {
      await opened();
      return withStoreErrors(recoverSteps(context));
    },
    async rollUp() {
      await opened();
      return withStoreErrors(rollUp(context));
    },
    async reconcileUsage(options) {
      await opened();
      return reconcileUsage(context, options);
    },
    async sweep() {
      await opened();
      return withStoreErrors(sweep(context));
    },
    close: lifecycle.close,
    [Symbol.asyncDispose]: () => lifecycle.close(),
  };
}

/** An older Node would fail with a TypeError somewhere later. */
function requireRuntime(): void {
  if ("withResolvers" in Promise) return;
  throw new GatewayError(
    "invalid_configuration",
    "Tollgate requires Node 22.22.3 or a later 22, or Node 24.15 or later.",
  );
}

/**
 * For bindings: rejects a value that can't be mounted, when the host starts instead of at its first request. A gateway, the
 * result of `gateway.as` and the admin API can be. `call` is the call in the host's code, for the message: `tollgate(gateway)`.
 * @throws GatewayError `invalid_configuration`
 */
export function requireGateway(value: unknown, call: string): asserts value is Mountable {
  if (typeof value === "object" && value !== null) {
    if ("answer" in value && typeof value.answer === "function" && "fetch" in value) return;
    if ("then" in value) throw wrong(call, "a promise: await it first");
  }
  throw wrong(call, value === undefined ? "nothing" : kindOf(value));
}

function wrong(call: string, given: string): GatewayError {
  const message = `${call} needs a gateway from createGateway, but got ${given}.`;
  return new GatewayError("invalid_configuration", message);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return typeof value === "object" ? "another object" : `a ${typeof value}`;
}
