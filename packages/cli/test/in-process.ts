import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { adminHandler } from "@tollgate/admin";
import type { Gateway } from "@tollgate/core";
import { toNodeHandler } from "@tollgate/node";
import { vi } from "vitest";
import { sweepOutput } from "../../../scripts/secret-sweep.ts";
import { describeFailure } from "../src/failure.ts";
import { createProgram } from "../src/main.ts";
import { openGateway } from "../src/open-gateway.ts";
import { type Ended, readJson } from "./command-line.ts";

/** Runs a command in this process, which is faster than `run`. */
export async function runHere(
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  // Each export adds listeners to the output of the process, and here one process has many.
  process.stdout.setMaxListeners(100);
  const [output, errors]: [string[], string[]] = [[], []];
  const catching = (into: string[]) => (part: string | Uint8Array) => {
    into.push(typeof part === "string" ? part : Buffer.from(part).toString());
    return true;
  };
  const spies = [
    vi.spyOn(process.stdout, "write").mockImplementation(catching(output)),
    vi.spyOn(process.stderr, "write").mockImplementation(catching(errors)),
  ];
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  let code = 0;
  try {
    await createProgram().parseAsync(["node", "tollgate", ...words]);
  } catch (thrown) {
    const { exitCode, line } = describeFailure(thrown);
    code = exitCode;
    if (line !== null) errors.push(`${line}\n`);
  } finally {
    vi.unstubAllEnvs();
    for (const spy of spies) spy.mockRestore();
  }
  const ended = { code, output: output.join(""), errors: errors.join("") };
  sweepOutput(`${ended.output}\n${ended.errors}`);
  return ended;
}

/** Runs a command in this process, in a folder. */
export async function runIn(
  folder: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const before = process.cwd();
  process.chdir(folder);
  try {
    return await runHere(words, environment);
  } finally {
    process.chdir(before);
  }
}

/** Returns the JSON document that a command prints with `--json`, in this process. */
export async function runJsonIn(folder: string, ...words: readonly string[]): Promise<unknown> {
  return readJson(words, await runIn(folder, [...words, "--json"]));
}

/** The admin API of a gateway, on a free port. */
export interface AdminServer {
  readonly url: string;
  close(): Promise<void>;
}

/** A gateway on a SQLite file of a folder, its configuration file, and its admin API. */
export async function openAdministered(folder: string): Promise<{
  readonly configuration: string;
  readonly gateway: Gateway;
  readonly admin: AdminServer;
}> {
  const configuration = join(folder, "tollgate.config.yaml");
  writeFileSync(
    configuration,
    JSON.stringify({
      store: { type: "sqlite", filename: join(folder, "tollgate.db") },
      providers: {
        sim: { type: "sim" },
        own: { type: "openai", apiKey: null, connection: "customer" },
      },
      secrets: { current: "k1", keys: { k1: Buffer.alloc(32, 7).toString("base64") } },
    }),
  );
  const { gateway } = await openGateway(configuration);
  return { configuration, gateway, admin: await serveAdmin(gateway) };
}

/** The only token that `serveAdmin` accepts. Its owner is `ada`. */
export const adminToken = "token-of-ada";

/** Serves the admin API of a gateway to one operator, who may do everything. */
export async function serveAdmin(gateway: Gateway): Promise<AdminServer> {
  const admin = adminHandler(gateway, {
    authenticateAdmin: (request) =>
      request.headers.get("authorization") === `Bearer ${adminToken}`
        ? {
            actor: "ada",
            organizations: "all",
            role: "admin",
            transcripts: { upTo: "D3_RESTRICTED" },
          }
        : null,
  });
  const server = createServer(toNodeHandler(admin));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return {
    url: `http://127.0.0.1:${address.port}/ops`,
    async close() {
      await admin.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
