import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createGateway } from "@tollgate/core";
import { serve } from "@tollgate/node";
import { z } from "zod";
import { gatewayOptions } from "./gateway-options.ts";

const organization = "acme";
const maxStartMs = 30_000;

const activityPage = z.object({
  data: z.array(
    z.looseObject({
      gateway: z.string(),
      provider: z.string(),
      model: z.string(),
      promptTokens: z.number(),
      completionTokens: z.number(),
      totalTokens: z.number(),
      costNanoUsd: z.number(),
      durationMs: z.number(),
      toolCalls: z.number(),
      keyLabel: z.string(),
      source: z.string(),
      sessionId: z.string(),
      turnId: z.string(),
      stepNumber: z.number(),
    }),
  ),
});

/** One activity record in JSON. */
export type ActivityRow = z.infer<typeof activityPage>["data"][number];

/** A listening gateway with its own database. */
export interface ServedGateway {
  readonly baseURL: string;
  /** Creates a key for this user and returns its secret. */
  createKey(key: { readonly user: string; readonly label: string }): Promise<string>;
  /** The activity of one user, newest first. */
  activity(user: string): Promise<readonly ActivityRow[]>;
  stop(): Promise<void>;
}

export type StartGateway = (upstream: string) => Promise<ServedGateway>;

const temporaryFolder = () => mkdtemp(join(tmpdir(), "tollgate-clients-"));
const remove = (folder: string) => rm(folder, { recursive: true, force: true });

/** Starts the gateway in this process, on its own port, with a SQLite file. */
export const serveInProcess: StartGateway = async (upstream) => {
  const folder = await temporaryFolder();
  return serveOn({ upstream, database: join(folder, "tollgate.db") }, () => remove(folder));
};

/** The same with the memory store. */
export const serveInMemory: StartGateway = (upstream) =>
  serveOn({ upstream, database: null }, async () => {});

async function serveOn(
  place: Parameters<typeof gatewayOptions>[0],
  cleanUp: () => Promise<void>,
): Promise<ServedGateway> {
  const gateway = createGateway(gatewayOptions(place));
  const server = await serve(gateway, { port: 0 });
  return {
    baseURL: `${server.url}/v1`,
    async createKey({ user, label }) {
      const { secret } = await gateway.keys.create({
        organizationId: organization,
        userId: user,
        label,
      });
      return secret;
    },
    async activity(user) {
      const page = await gateway.activity.list({ organizationId: organization, user });
      return activityPage.parse(page).data;
    },
    async stop() {
      await server.close();
      await gateway.close();
      await cleanUp();
    },
  };
}

const run = promisify(execFile);
const binary = fileURLToPath(new URL("../../cli/bin/tollgate.js", import.meta.url));
const configuration = fileURLToPath(new URL("./tollgate.config.ts", import.meta.url));

async function listeningUrl(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: output })) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
    if (url !== undefined) return url;
  }
  throw new Error("serve ended before it printed its address");
}

/** Starts the gateway as `tollgate serve` in its own process, and administers it on the command line. */
export const serveByCommand: StartGateway = async (upstream) => {
  const folder = await temporaryFolder();
  const environment = {
    ...process.env,
    TEST_UPSTREAM: upstream,
    TEST_DATABASE: join(folder, "tollgate.db"),
  };
  const options = { cwd: folder, env: environment };
  const tollgate = async (...more: readonly string[]): Promise<unknown> => {
    const line = [binary, ...more, "--config", configuration, "--json"];
    return JSON.parse((await run("node", line, options)).stdout);
  };
  const child = spawn("node", [binary, "serve", "--port", "0", "--config", configuration], {
    ...options,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const expired = setTimeout(() => child.kill("SIGKILL"), maxStartMs);
  const url = await listeningUrl(child.stdout);
  clearTimeout(expired);
  child.stdout.resume();
  return {
    baseURL: `${url}/v1`,
    async createKey({ user, label }) {
      const who = ["--organization", organization, "--user", user, "--label", label];
      return z.object({ secret: z.string() }).parse(await tollgate("keys", "create", ...who))
        .secret;
    },
    async activity(user) {
      const who = ["--organization", organization, "--user", user];
      return activityPage.parse(await tollgate("activity", "list", ...who)).data;
    },
    async stop() {
      const ended = child.exitCode !== null || child.signalCode !== null;
      if (!ended) {
        child.kill("SIGTERM");
        await once(child, "exit");
      }
      await remove(folder);
    },
  };
};
