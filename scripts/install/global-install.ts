import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { neededBy, type Tarball } from "./pack-packages.ts";
import { runNpm } from "./run-npm.ts";

const maxStartMs = 20_000;

const yaml = `store: { type: sqlite, filename: "\${DATABASE:-tollgate.db}" }
providers:
  sim: { type: sim }
policy:
  rules:
    - { effect: permit, id: echo, match: { model: sim/tollgate/echo } }
serve: { port: 0 }
`;

const typescript = `import { definePolicy, permit } from "@tollgate/core/policy";
import { simProvider } from "@tollgate/provider-sim";
import { memoryStore } from "@tollgate/store-memory";

const model: string = "sim/tollgate/echo";

export default {
  store: memoryStore(),
  providers: { sim: simProvider() },
  policy: definePolicy({ rules: [permit("echo", { model })] }),
};
`;

/** Configuration files in a folder without packages, such as one mounted into a container. */
export const mountedConfigurations = {
  "tollgate.config.yaml": yaml,
  "tollgate.config.ts": typescript,
} as const;

/** The command line after `npm install --global`. */
export interface GlobalInstall {
  /**
   * Checks and serves a mounted configuration, and makes one call.
   * @throws Error when a step of it fails, or when the command line writes a warning
   */
  serve(name: keyof typeof mountedConfigurations): Promise<void>;
}

/** Installs the packed command line and its dependencies under a separate prefix. @throws Error if npm fails */
export function installGlobally(folder: string, packages: readonly Tarball[]): GlobalInstall {
  const prefix = join(folder, "global");
  const mounted = join(folder, "etc", "tollgate");
  const elsewhere = join(folder, "elsewhere");
  for (const path of [prefix, mounted, elsewhere]) mkdirSync(path, { recursive: true });
  const needed = neededBy("tollgate", packages).map(({ path }) => path);
  runNpm(folder, "install", "--global", `--prefix=${prefix}`, "--no-audit", "--no-fund", ...needed);
  const library = process.platform === "win32" ? prefix : join(prefix, "lib");
  const binary = join(library, "node_modules", "tollgate", "bin", "tollgate.js");
  return {
    async serve(name) {
      const file = join(mounted, name);
      writeFileSync(file, mountedConfigurations[name]);
      const words = [binary, "--config", file];
      execFileSync(process.execPath, [...words, "check", "--strict"], {
        cwd: elsewhere,
        stdio: "pipe",
      });
      const child = spawn(process.execPath, [...words, "serve", "--port", "0"], {
        cwd: elsewhere,
        stdio: ["ignore", "pipe", "pipe"],
      });
      const expired = setTimeout(() => child.kill("SIGKILL"), maxStartMs);
      try {
        await callOnce(child);
      } finally {
        clearTimeout(expired);
        child.kill("SIGKILL");
      }
    },
  };
}

async function callOnce(child: ChildProcess): Promise<void> {
  const errors: string[] = [];
  child.stderr?.on("data", (part) => errors.push(String(part)));
  const seen = { url: "", key: "" };
  if (child.stdout)
    for await (const line of createInterface({ input: child.stdout })) {
      seen.url ||= /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0] ?? "";
      seen.key ||= /\btg_[0-9A-Za-z]{49}\b/.exec(line)?.[0] ?? "";
      if (seen.url !== "" && seen.key !== "") break;
    }
  if (seen.key === "") throw new Error(`serve printed no address and no key: ${errors.join("")}`);
  child.stdout?.resume();
  const ask = (model: string): Promise<Response> =>
    fetch(`${seen.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${seen.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
    });
  const answer = await (await ask("sim/tollgate/echo")).text();
  if (!answer.includes("You said: Hello")) throw new Error(`Unexpected answer: ${answer}`);
  if (errors.length > 0) throw new Error(`serve wrote ${errors.join("")}`);
  const { status } = await ask("sim/tollgate/echo-preview");
  if (status !== 403)
    throw new Error(`A call that the policy doesn't permit got status ${status}.`);
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
  if (child.exitCode !== 0) throw new Error(`serve exited with ${child.exitCode}`);
}
