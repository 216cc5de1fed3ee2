import type { Gateway } from "@tollgate/core";
import { type RunningServer, serve } from "@tollgate/node";
import { announcement } from "./announcement.ts";
import { CommandError } from "./failure.ts";
import { type FirstKey, firstKey } from "./first-key.ts";
import type { Globals } from "./globals.ts";
import { openGateway } from "./open-gateway.ts";
import { print } from "./print.ts";

/** Serves until a signal asks to stop; then open answers may end, and the gateway settles and closes. */
export async function runServer(
  options: Globals & { readonly port: number; readonly host: string },
): Promise<void> {
  const stopped = untilStopped();
  const { gateway, configuration } = await openGateway(options.config);
  try {
    await gateway.ready();
    const server = await listen(gateway, options);
    const key = await firstKey(gateway, options.actor);
    announce(options.json, server.url, key, configuration);
    await stopped;
    await server.close();
  } finally {
    await gateway.close();
  }
}

async function listen(
  gateway: Gateway,
  { port, host }: { readonly port: number; readonly host: string },
): Promise<RunningServer> {
  try {
    return await serve(gateway, { port, host, endAnswers: () => gateway.close() });
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? thrown.code : null;
    if (code === "EADDRINUSE")
      throw new CommandError(`port ${port} of ${host} is in use: choose another with --port`);
    throw thrown;
  }
}

/** Resolves at the first signal; the second ends the process at once. */
function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    const onSignal = (signal: "SIGINT" | "SIGTERM"): void => {
      if (asked) process.exit(signal === "SIGINT" ? 130 : 143);
      asked = true;
      resolve();
    };
    process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  });
}

function announce(
  json: boolean | undefined,
  url: string,
  { key, secret }: FirstKey,
  configuration: string | null,
): void {
  print(json, { url, key, secret }, announcement({ url, secret, sim: configuration === null }));
}
