// Apps with other versions of the packages that Tollgate works with. Each one must install without a peer conflict,
// compile and run.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Tarball } from "./pack-packages.ts";
import { runNpm } from "./run-npm.ts";

const longestRunMs = 180_000;

/** The versions in an app of the packages that Tollgate works with. */
export interface AppVersions {
  readonly openai: string;
  readonly vitest: string;
  readonly fastCheck: string;
  readonly sqlite: string;
  readonly express: string;
  readonly next: string;
}

/** Every supported combination. */
export const everyApp: readonly AppVersions[] = [
  { openai: "4", vitest: "2", fastCheck: "3", sqlite: "11", express: "4.18", next: "15" },
  { openai: "5", vitest: "3", fastCheck: "3", sqlite: "12", express: "4", next: "15" },
  { openai: "6", vitest: "4", fastCheck: "4", sqlite: "12", express: "5.0", next: "16" },
  { openai: "7", vitest: "5", fastCheck: "4", sqlite: "13", express: "5", next: "16" },
];

/** The name of an app in the report. */
export const nameOf = (app: AppVersions): string =>
  `openai ${app.openai}, vitest ${app.vitest}, fast-check ${app.fastCheck}, better-sqlite3 ${app.sqlite}, express ${app.express}, next ${app.next}, zod 3 and 4`;

const program = `
import assert from "node:assert/strict";
import { createGateway } from "@tollgate/core";
import { tollgate } from "@tollgate/express";
import { toNextHandlers } from "@tollgate/next";
import { simProvider } from "@tollgate/provider-sim";
import { memoryStore } from "@tollgate/store-memory";
import { sqliteStore } from "@tollgate/store-sqlite";
import type Database from "better-sqlite3";
import express from "express";
import OpenAI from "openai";
import { z } from "zod";
import { z as z4 } from "zod-4";

/** The store accepts a better-sqlite3 database of any version as its client. */
export const sqlite = (client: Database.Database) => sqliteStore({ client });

const gateway = createGateway({ store: memoryStore(), providers: { sim: simProvider() } });
const key = await gateway.keys.create({ organizationId: "acme", userId: "ada", label: "laptop" });
const app = express().use("/ai", tollgate(gateway));
const server = app.listen(0, "127.0.0.1");
await new Promise((listening) => server.once("listening", listening));
const address = server.address();
assert(address !== null && typeof address === "object");
const { GET } = toNextHandlers(gateway);
assert.equal((await GET(new Request("http://localhost/ai/v1/models"))).status, 401);

const clients = [
  new OpenAI({ baseURL: \`http://127.0.0.1:\${address.port}/ai/v1\`, apiKey: key.secret }),
  new OpenAI({ baseURL: "http://in-process/v1", apiKey: key.secret, fetch: gateway.fetch }),
];
for (const client of clients) {
  const answer = await client.chat.completions.create({
    model: "sim/tollgate/echo",
    messages: [{ role: "user", content: "Hello" }],
  });
  const text = answer.choices[0]?.message.content;
  assert.notEqual(z.string().parse(text), "");
  assert.notEqual(z4.string().parse(text), "");
}
server.close();
await gateway.close();
`;

const suites = `
import { describeBindingContract } from "@tollgate/conformance/binding-contract";
import { serve } from "@tollgate/node";
import { openaiCompatible } from "@tollgate/provider-openai";
import { memoryStore } from "@tollgate/store-memory";
import { describeStoreContract } from "@tollgate/testing/store-contract";

describeStoreContract("memory", { open: async () => ({ store: memoryStore() }) });
describeBindingContract("node", {
  provider: (baseURL) => openaiCompatible({ baseURL, apiKey: "sk-platform" }),
  serve: (gateway, { writeStall }) => serve(gateway, { port: 0, limits: { writeStall } }),
});
`;

/** The types for a release of Express or better-sqlite3. */
const typesOf = ({ express, sqlite }: AppVersions) => ({
  "@types/express": express.startsWith("4") ? "^4.17.21" : "^5.0.0",
  "@types/better-sqlite3": Number(sqlite) < 13 ? "^7.6.0" : "*",
});

const manifestOf = (app: AppVersions, packages: readonly Tarball[]): string =>
  JSON.stringify({
    name: "app",
    private: true,
    type: "module",
    dependencies: {
      ...Object.fromEntries(packages.map(({ manifest, path }) => [manifest.name, `file:${path}`])),
      "@types/node": "^24.19.2",
      ...typesOf(app),
      "better-sqlite3": app.sqlite,
      express: app.express,
      fastify: "5",
      "fast-check": app.fastCheck,
      next: app.next,
      openai: app.openai,
      react: "19",
      "react-dom": "19",
      typescript: "7",
      vitest: app.vitest,
      zod: "3",
      "zod-4": "npm:zod@4",
    },
  });

const configuration = {
  compilerOptions: {
    target: "es2022",
    lib: ["es2024", "dom", "esnext.disposable"],
    types: ["node"],
    module: "nodenext",
    strict: true,
    // Skip the declarations of other packages. The app's own code checks ours.
    skipLibCheck: true,
    rootDir: "src",
    outDir: "out",
  },
  include: ["src"],
};

/**
 * Installs the packed packages into an app with these versions, compiles it, runs it, and runs the conformance suites
 * under its vitest.
 * @throws Error with the output of npm, the compiler or the program
 */
export function checkApp(folder: string, app: AppVersions, packages: readonly Tarball[]): void {
  const directory = join(folder, `app-openai-${app.openai}`);
  mkdirSync(join(directory, "src"), { recursive: true });
  writeFileSync(join(directory, "package.json"), manifestOf(app, packages));
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(configuration));
  // Release 4 uses the types of node-fetch by default.
  const shim = app.openai === "4" ? 'import "openai/shims/web";' : "";
  writeFileSync(join(directory, "src/app.ts"), `${shim}${program}`);
  writeFileSync(join(directory, "src/suites.test.ts"), suites);
  runNpm(directory, "install", "--ignore-scripts", "--strict-peer-deps");
  const run = (...words: readonly string[]) =>
    execFileSync(process.execPath, words, {
      cwd: directory,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: longestRunMs,
    });
  run("node_modules/typescript/bin/tsc", "-p", ".");
  run("out/app.js");
  const tests = "the store contract|the OpenAI SDK";
  run(
    "node_modules/vitest/vitest.mjs",
    "run",
    "--dir",
    "src",
    "--testTimeout",
    "60000",
    "-t",
    tests,
  );
  rmSync(directory, { recursive: true, force: true });
}
