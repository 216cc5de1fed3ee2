import type { AdminFailure } from "@tollgate/admin";
import { everyOrganization, type Gateway, type KeyRecord, type Mountable } from "@tollgate/core";
import { type RunningServer, type ServeOptions, serve } from "@tollgate/node";
import type { ServeSettings } from "./configuration/data-schema.ts";
import { eventLog, type LogLevel } from "./event-log.ts";
import { CommandError, listenFailure } from "./failure.ts";
import { defaultActor, type Globals } from "./globals.ts";
import { openGateway } from "./open-gateway.ts";
import { print } from "./print.ts";

/** The time left for a shutdown after the second signal, in milliseconds. */
const hurriedCloseMs = 1_000;
/** The process exits this long after the gateway has closed, in milliseconds, even if something still runs. */
const exitDelayMs = 500;

/** Options of `tollgate serve`. Times are in seconds. */
export interface ServerOptions extends Globals {
  readonly port?: number;
  readonly host?: string;
  readonly closeWithin?: number;
  readonly drainDelay?: number;
  readonly firstKey?: boolean;
  readonly log?: LogLevel;
  readonly metricsPort?: number;
  readonly adminPort?: number;
  readonly adminHost?: string;
}

/** Serves until a signal. Then it lets open answers finish, settles and closes. */
export async function runServer(options: ServerOptions): Promise<void> {
  const signals = watchSignals();
  const { gateway, configuration, serve: configured } = await openGateway(options.config);
  const settings = serverSettings(configured, options);
  const { closeWithin = 25, drainDelay = 0, log = "warnings", ...listening } = settings;
  try {
    if (drainDelay >= closeWithin)
      throw new CommandError(
        `--drain-delay (${drainDelay} s) must be less than --close-within (${closeWithin} s), which includes it`,
        2,
      );
    const note = eventLog(log, (line) => process.stderr.write(line));
    gateway.observe(note);
    await gateway.ready();
    const metrics = await metricsServer(gateway, options, listening);
    const { close, health } = gateway;
    const delayed = { ...listening, drainDelay: drainDelay * 1_000 };
    const server = await listen(
      gateway,
      { ...delayed, close, health },
      { port: "--port", host: "--host" },
    );
    const admin = await adminServer(gateway, options, (failure) =>
      note({ type: "admin.failed", ...failure }),
    );
    const key =
      options.firstKey === false ? noKey : await firstKey(gateway, options.actor ?? defaultActor);
    announce(
      options.json,
      { url: server.url, adminUrl: admin?.url ?? null, ...key },
      configuration,
    );
    await signals.first;
    const servers = admin === null ? [server] : [server, admin];
    const closeAll = (within: number) => Promise.all(servers.map((one) => one.close({ within })));
    signals.onSecond(() => void closeAll(hurriedCloseMs));
    await closeAll(closeWithin * 1_000);
    await metrics?.close();
  } finally {
    await gateway.close();
    setTimeout(() => process.exit(), exitDelayMs).unref();
  }
}

/** The command line and its environment override the configuration file. */
export function serverSettings(
  configured: ServeSettings,
  { port, host, closeWithin, drainDelay, log }: Omit<ServerOptions, keyof Globals>,
): ServeSettings {
  return {
    ...configured,
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
    ...(closeWithin === undefined ? {} : { closeWithin }),
    ...(drainDelay === undefined ? {} : { drainDelay }),
    ...(log === undefined ? {} : { log }),
  };
}

/** Starts the server for Prometheus, if asked to. Only then does the process load the telemetry SDK. */
async function metricsServer(
  gateway: Gateway,
  { metricsPort: port }: ServerOptions,
  { host = "127.0.0.1" }: ServeSettings,
): Promise<{ readonly close: () => Promise<void> } | null> {
  if (port === undefined) return null;
  const { serveMetrics } = await import("./serve-metrics.ts");
  return serveMetrics(gateway, { port, host });
}

/** Serves the admin API on a separate listener, if asked to. Who signs in has a token from `admin-tokens`. */
async function adminServer(
  gateway: Gateway,
  { adminPort: port, adminHost: host = "127.0.0.1" }: ServerOptions,
  onFailure: (failure: AdminFailure) => void,
): Promise<RunningServer | null> {
  if (port === undefined) return null;
  const { adminHandler, tokenSignIn } = await import("@tollgate/admin");
  const authenticateAdmin = tokenSignIn(gateway);
  const admin = adminHandler(gateway, { authenticateAdmin, onFailure });
  const names = { port: "--admin-port", host: "--admin-host" };
  return listen(admin, { port, host, close: admin.close }, names);
}

async function listen(
  mounted: Mountable,
  options: ServeOptions,
  names: { readonly port: string; readonly host: string },
): Promise<RunningServer> {
  const { port = 8787, host = "127.0.0.1" } = options;
  try {
    return await serve(mounted, { ...options, port, host });
  } catch (thrown) {
    throw listenFailure(thrown, { port, host }, names);
  }
}

/** The first signal starts a shutdown, the second shortens it, and the third ends the process at once. */
function watchSignals() {
  const first = Promise.withResolvers<void>();
  let hurry = (): void => {};
  let signals = 0;
  const onSignal = (signal: "SIGINT" | "SIGTERM"): void => {
    signals++;
    if (signals === 1) first.resolve();
    else if (signals === 2) hurry();
    else process.exit(signal === "SIGINT" ? 130 : 143);
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return {
    first: first.promise,
    onSecond(run: () => void): void {
      hurry = run;
      if (signals > 1) run();
    },
  };
}

function announce(
  json: boolean | undefined,
  served: FirstKey & { readonly url: string; readonly adminUrl: string | null },
  configuration: string | null,
): void {
  print(json, served, announcement({ ...served, sim: configuration === null }));
}

/** Returns the text that `serve` prints when it listens: its address, its key, and a command to try. */
function announcement({
  url,
  adminUrl,
  secret,
  sim,
}: {
  readonly url: string;
  /** Where the admin API listens; null if it isn't served. */
  readonly adminUrl: string | null;
  /** The new key; null if keys already exist. */
  readonly secret: string | null;
  /** Whether the built-in `sim` gateway is configured. */
  readonly sim: boolean;
}): string {
  const key =
    secret === null
      ? "Put an API key in TOLLGATE_KEY. To create one:\n\n" +
        "  tollgate keys create --organization default --user default --label laptop"
      : `Created an API key for organization "default". It is shown only once:\n\n  ${secret}`;
  const bearer = `-H "Authorization: Bearer ${secret ?? "$TOLLGATE_KEY"}"`;
  const command = sim ? tryChat(url, bearer) : `  curl -fsS ${url}/v1/models ${bearer}`;
  const admin =
    adminUrl === null
      ? ""
      : `The admin API listens on ${adminUrl}\nTo create a token for it:\n\n` +
        "  tollgate admin-tokens create --label NAME --role admin --all-organizations\n\n";
  return `Tollgate listens on ${url}\n\n${admin}${key}\n\nTry it:\n\n${command}\n`;
}

function tryChat(url: string, bearer: string): string {
  const body = JSON.stringify({
    model: "sim/tollgate/echo",
    messages: [{ role: "user", content: "Hello" }],
  });
  return [
    `  curl -fsS ${url}/v1/chat/completions \\`,
    `    ${bearer} -H "Content-Type: application/json" \\`,
    `    -d '${body}'`,
  ].join("\n");
}

/** The key created on the first start. Both are null later. */
interface FirstKey {
  readonly key: KeyRecord | null;
  readonly secret: string | null;
}

const noKey: FirstKey = { key: null, secret: null };

/** Creates a key if none exists, so a new gateway can be used at once. */
async function firstKey(gateway: Gateway, actor: string): Promise<FirstKey> {
  const { data } = await gateway.keys.list({ organizationId: everyOrganization }, { limit: 1 });
  if (data.length > 0) return noKey;
  return gateway.keys.create({
    organizationId: "default",
    userId: "default",
    label: "first key",
    actor,
  });
}
