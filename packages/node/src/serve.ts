import type { Server, ServerResponse } from "node:http";
import { systemClock } from "@tollgate/core";
import {
  type OptionalMember,
  read,
  type Schema,
  text,
  wholeNumber,
  z,
} from "@tollgate/core/schemas";
import { createInFlight } from "@tollgate/core/store";
import { answerHealthCheck, type HealthCheck, isHealthCheck, notReady } from "./health.ts";
import { refuse, refuseConnection } from "./refuse.ts";
import {
  defaultServerLimits,
  limitConnectionsPerAddress,
  type ServerLimits,
} from "./server-limits.ts";
import { type AnswerHandler, type FetchHandler, toNodeHandler } from "./to-node-handler.ts";
import type { IncomingRequest } from "./to-request.ts";

/** Where to listen, and the limits of the server. */
export interface ServeOptions {
  /** Default 8787. 0 selects a free port. */
  readonly port?: number;
  /** The address to listen on. Default `127.0.0.1`: only this machine. */
  readonly host?: string;
  readonly limits?: Partial<ServerLimits>;
  /**
   * Closes the gateway together with the server and within the same time: `gateway.close`. The gateway lets answers
   * finish for most of that time and then ends them with an error that clients can read. Without it, later answers are
   * cut off.
   */
  readonly close?: (deadline: { readonly within: number }) => Promise<unknown>;
  /**
   * Answers health checks, without authentication: `gateway.health`. `GET /healthz` is 200 while the process answers.
   * `GET /readyz` is 200 if it should get requests; otherwise, and once the server closes, 503 with the reasons.
   * Default: the gateway gets these requests too.
   */
  readonly health?: HealthCheck;
  /**
   * How long a closing server still admits requests while `/readyz` is 503, so that a load balancer stops sending them. In
   * milliseconds, part of the time that `close` may take. Default 0.
   */
  readonly drainDelay?: number;
}

const limitMembers = Object.fromEntries(
  Object.keys(defaultServerLimits).map((name) => [name, z.exactOptional(wholeNumber(1))]),
);

/** A listening server. */
export interface RunningServer {
  /** Its address, such as `http://127.0.0.1:8787`. */
  readonly url: string;
  /**
   * Stops listening, rejects further requests, lets open answers finish, and cuts off the rest after `within`
   * milliseconds (default `limits.closing`, 25,000). You can call it twice: a shorter time makes it end sooner.
   */
  close(options?: { readonly within?: number }): Promise<void>;
}

/** The schema members for the data options of `serve`. */
export const serveMembers: {
  readonly port: OptionalMember<number>;
  readonly host: OptionalMember<string>;
  readonly limits: OptionalMember<Partial<ServerLimits>>;
} = {
  port: z.exactOptional(wholeNumber(0, 65_535)),
  host: z.exactOptional(text((host) => host !== "", "must be an address or a name")),
  limits: z.exactOptional(
    z
      .strictObject(limitMembers)
      .check(
        z.refine(
          ({ headersTimeout = 1, requestTimeout = defaultServerLimits.requestTimeout }) =>
            headersTimeout <= requestTimeout,
          { error: "must not be above `requestTimeout`", path: ["headersTimeout"] },
        ),
      ),
  ),
};

const serveOptions: Schema<ServeOptions> = z.strictObject({
  ...serveMembers,
  close: z.exactOptional(functionLike<NonNullable<ServeOptions["close"]>>("gateway.close")),
  health: z.exactOptional(functionLike<HealthCheck>("gateway.health")),
  drainDelay: z.exactOptional(wholeNumber(0)),
});

function functionLike<Function>(example: string) {
  return z.custom<Function>((value) => typeof value === "function", {
    error: `must be a function, such as ${example}`,
  });
}

function requireServeOptions(options: ServeOptions): ServeOptions {
  return read(serveOptions, options, { code: "invalid_configuration", noun: "option" });
}

/**
 * Serves a gateway over HTTP with the limits of `ServerLimits`. Resolves when it is listening.
 * @throws GatewayError `invalid_configuration`, with every problem and its path
 * @throws Error if it can't listen on the address (`EADDRINUSE`, `EACCES`, …)
 */
export async function serve(
  gateway: FetchHandler | AnswerHandler,
  options: ServeOptions = {},
): Promise<RunningServer> {
  const checked = requireServeOptions(options);
  const { port = 8787, host = "127.0.0.1", drainDelay = 0, health } = checked;
  const limits = limitsWith(checked.limits);
  const answers = trackAnswers();
  let isClosing = false;
  const handle = toNodeHandler(gateway, { writeStall: limits.writeStall });
  const readiness: HealthCheck = async () =>
    isClosing || health === undefined ? notReady : health();
  const server = createLimitedServer(limits, (incoming, outgoing) => {
    if (incoming.rawHeaders.length > 2 * limits.headerCount)
      return refuse(outgoing, "headers_too_large");
    if (health !== undefined && isHealthCheck(incoming))
      return void answerHealthCheck(incoming, outgoing, readiness);
    if (!answers.admit(outgoing)) return refuse(outgoing, "overloaded");
    void handle(incoming, outgoing);
  });
  await listen(server, port, host);

  const deadline = createDeadline();
  const closeGateway = (within: number) => checked.close?.({ within }).catch(() => {});
  const shutDown = async (within: number): Promise<void> => {
    hasStopped = true;
    const served = closeGateway(within);
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    answers.stopAdmitting();
    await Promise.race([Promise.all([answers.emptied(), served]), deadline.passed]);
    deadline.cancel();
    server.closeAllConnections();
    await closed;
  };
  const delay = Promise.withResolvers<void>();
  let hasStopped = false;
  let closing: Promise<void> | undefined;
  return {
    url: urlOf(server, host),
    close({ within = limits.closing } = {}) {
      isClosing = true;
      const isShorter = deadline.within(within);
      if (closing === undefined && drainDelay === 0) closing = shutDown(within);
      else if (closing === undefined) {
        systemClock.after(Math.min(drainDelay, within), delay.resolve);
        closing = delay.promise.then(() => shutDown(deadline.left()));
      } else if (isShorter && hasStopped) void closeGateway(within);
      else if (isShorter) delay.resolve();
      return closing;
    },
  };
}

/** The defaults, with `given` in place of them. Node refuses to wait longer for the headers than for the whole request. */
function limitsWith(given: Partial<ServerLimits> = {}): ServerLimits {
  const { headersTimeout, requestTimeout } = { ...defaultServerLimits, ...given };
  return {
    ...defaultServerLimits,
    ...given,
    headersTimeout: Math.min(headersTimeout, requestTimeout),
  };
}

/** The time by which a shutdown must end. It can only move forward. */
function createDeadline() {
  const passed = Promise.withResolvers<void>();
  let at = Number.POSITIVE_INFINITY;
  let cancel = (): void => {};
  return {
    passed: passed.promise,
    /** Returns false if the deadline is already earlier. */
    within(milliseconds: number): boolean {
      const next = performance.now() + milliseconds;
      if (next >= at) return false;
      at = next;
      cancel();
      cancel = systemClock.after(milliseconds, passed.resolve);
      return true;
    },
    /** Milliseconds until then. */
    left: () => Math.max(0, Math.ceil(at - performance.now())),
    cancel(): void {
      at = Number.NEGATIVE_INFINITY;
      cancel();
    },
  };
}

function createLimitedServer(
  limits: ServerLimits,
  onRequest: (incoming: IncomingRequest, outgoing: ServerResponse) => void,
): Server {
  // Importing node:http reads all its members and so loads fetch and WebSocket, which takes 30 ms.
  const server = process.getBuiltinModule("node:http").createServer(
    {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersTimeout,
      requestTimeout: limits.requestTimeout,
      keepAliveTimeout: limits.keepAlive,
      connectionsCheckingInterval: Math.min(limits.headersTimeout, 5_000),
    },
    onRequest,
  );
  // Some releases of Node drop lines above this number, such as one that a proxy appended. One line more shows that there
  // were too many. Node doubles the number in 32 bits.
  server.maxHeadersCount = Math.min(limits.headerCount + 1, 2 ** 30 - 1);
  server.maxConnections = limits.connections;
  limitConnectionsPerAddress(server, limits.connectionsPerAddress);
  server.on("clientError", refuseConnection);
  return server;
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      // Later errors are connections that couldn't be accepted. Their clients see them, and the server continues.
      server.on("error", () => {});
      resolve();
    });
  });
}

function urlOf(server: Server, host: string): string {
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const name = host === "0.0.0.0" || host === "::" ? "localhost" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/** Tracks open answers, so a shutdown can wait for them. */
function trackAnswers() {
  const open = createInFlight<ServerResponse>();
  let admitting = true;
  let whenEmpty = (): void => {};
  return {
    admit(outgoing: ServerResponse): boolean {
      if (!admitting) return false;
      const slot = open.add(outgoing);
      outgoing.once("close", () => {
        open.remove(slot);
        if (open.count() === 0) whenEmpty();
      });
      return true;
    },
    /** Rejects new requests. Connections whose answer hasn't started close after it. */
    stopAdmitting(): void {
      admitting = false;
      for (const outgoing of open.all())
        if (!outgoing.headersSent) outgoing.setHeader("connection", "close");
    },
    /** Resolves when no answer is open. */
    emptied(): Promise<void> {
      if (open.count() === 0) return Promise.resolve();
      return new Promise((resolve) => {
        whenEmpty = resolve;
      });
    },
  };
}
