import { everyOrganization, type Gateway, type GatewayEvent, type KeyRecord } from "@tollgate/core";
import { type RunningServer, type ServeOptions, serve } from "@tollgate/node";
import type { ServeSettings } from "./configuration/data-schema.ts";
import { CommandError } from "./failure.ts";
import type { Globals } from "./globals.ts";
import { openGateway } from "./open-gateway.ts";
import { print } from "./print.ts";

/** The time left for a shutdown after the second signal, in milliseconds. */
const hurriedCloseMs = 1_000;
/** The process exits this long after the gateway has closed, in milliseconds, even if something still runs. */
const exitDelayMs = 500;

/** Where to listen, and the seconds for a shutdown and for its first part. */
export interface ServerOptions extends Globals {
  readonly port?: number;
  readonly host?: string;
  readonly closeWithin?: number;
  readonly drainDelay?: number;
}

/** Serves until a signal. Then it lets open answers finish, settles and closes. */
export async function runServer(options: ServerOptions): Promise<void> {
  const signals = watchSignals();
  const { gateway, configuration, serve: configured } = await openGateway(options.config);
  const { closeWithin = 25, drainDelay = 0, ...listening } = serverSettings(configured, options);
  try {
    gateway.observe(failureLog((line) => process.stderr.write(line)));
    await gateway.ready();
    const server = await listen(gateway, { ...listening, drainDelay: drainDelay * 1_000 });
    const key = await firstKey(gateway, options.actor);
    announce(options.json, server.url, key, configuration);
    await signals.first;
    signals.onSecond(() => void server.close({ within: hurriedCloseMs }));
    await server.close({ within: closeWithin * 1_000 });
  } finally {
    await gateway.close();
    setTimeout(() => process.exit(), exitDelayMs).unref();
  }
}

/** The command line and its environment override the configuration file. */
export function serverSettings(
  configured: ServeSettings,
  { port, host, closeWithin, drainDelay }: Omit<ServerOptions, keyof Globals>,
): ServeSettings {
  return {
    ...configured,
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
    ...(closeWithin === undefined ? {} : { closeWithin }),
    ...(drainDelay === undefined ? {} : { drainDelay }),
  };
}

async function listen(gateway: Gateway, options: ServeOptions): Promise<RunningServer> {
  const { port = 8787, host = "127.0.0.1" } = options;
  try {
    const { close, health } = gateway;
    return await serve(gateway, { ...options, port, host, close, health });
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? thrown.code : null;
    if (code === "EADDRINUSE")
      throw new CommandError(`port ${port} of ${host} is in use: choose another port with --port`);
    throw thrown;
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
  url: string,
  { key, secret }: FirstKey,
  configuration: string | null,
): void {
  print(json, { url, key, secret }, announcement({ url, secret, sim: configuration === null }));
}

/** Returns the text that `serve` prints when it listens: its address, its key, and a command to try. */
function announcement({
  url,
  secret,
  sim,
}: {
  readonly url: string;
  /** The new key; null if keys already exist. */
  readonly secret: string | null;
  /** Whether the built-in `sim` gateway is configured. */
  readonly sim: boolean;
}): string {
  const key =
    secret === null
      ? "API keys already exist. Put one in TOLLGATE_KEY, or create another:\n\n" +
        "  tollgate keys create --organization default --user default --label laptop"
      : `Created an API key for organization "default". It is shown only this once:\n\n  ${secret}`;
  const bearer = `-H "Authorization: Bearer ${secret ?? "$TOLLGATE_KEY"}"`;
  const command = sim ? tryChat(url, bearer) : `  curl -fsS ${url}/v1/models ${bearer}`;
  return `Tollgate listens on ${url}\n\n${key}\n\nTry it:\n\n${command}\n`;
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

/** Writes one line of JSON for each failed request, with ids and codes, but without content or secrets. */
function failureLog(write: (line: string) => void): (event: GatewayEvent) => void {
  return (event) => {
    if (event.type !== "answer.failed") return;
    const { at, requestId, code, status, organizationId, keyId, stepId } = event;
    const time = new Date(at).toISOString();
    const line = JSON.stringify({ time, requestId, code, status, organizationId, keyId, stepId });
    write(`${escaped(line)}\n`);
  };
}

/** Escapes characters that a terminal or a log reader could interpret. */
function escaped(json: string): string {
  return json.replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The key created on the first start. Both are null later. */
interface FirstKey {
  readonly key: KeyRecord | null;
  readonly secret: string | null;
}

/** Creates a key if none exists, so a new gateway can be used at once. */
async function firstKey(gateway: Gateway, actor: string): Promise<FirstKey> {
  const { data } = await gateway.keys.list({ organizationId: everyOrganization }, { limit: 1 });
  if (data.length > 0) return { key: null, secret: null };
  return gateway.keys.create({
    organizationId: "default",
    userId: "default",
    label: "first key",
    actor,
  });
}
