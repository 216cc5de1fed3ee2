/**
 * `npm run clients:guides`: installs the clients of the guides from npm, at the versions that the guides name, into a
 * temporary folder. Each runs headless with its guide's very block, where only the address and the key are replaced.
 * The model is scripted. Choose clients with `npm run clients:guides -- codex mastra`. Exits with 1 if one fails, or
 * isn't recorded as its guide says.
 */
import { deepStrictEqual } from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { createGateway } from "@tollgate/core";
import { serve } from "@tollgate/node";
import { memoryStore } from "@tollgate/store-memory";
import { type ScriptedCall, scriptedProvider } from "@tollgate/testing";
import { snippets } from "../../../house/src/markdown.ts";
import { headlessEnvironment, installFromNpm, recordOf, reportEach } from "../installed-client.ts";
import { clients, type GuidedClient, prompts } from "./clients.ts";

const run = promisify(execFile);
const maxSeconds = 90;
const organizationId = "acme";
const pages = new URL("../../../../docs/guides/clients/", import.meta.url);

const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !(name in clients));
if (unknown.length > 0) throw new Error(`Unknown clients: ${unknown.join(", ")}.`);

const folder = await mkdtemp(join(tmpdir(), "tollgate-guides-"));
try {
  const all = Object.entries(clients).filter(
    ([name]) => chosen.length === 0 || chosen.includes(name),
  );
  await reportEach(all, ([name]) => name, follow);
} finally {
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** Follows one guide, and requires its record. */
async function follow([name, client]: readonly [string, GuidedClient]): Promise<void> {
  const { version, block } = await readGuide(client);
  const place = join(folder, name);
  const home = join(place, "home");
  await mkdir(home, { recursive: true });
  await installFromNpm(place, client.packages(version));
  const model = scriptedProvider();
  model.reply((call) => answer(call, client), { times: Number.POSITIVE_INFINITY });
  const gateway = createGateway({
    store: memoryStore(),
    providers: { openai: model.at("openai"), openrouter: model.at("openrouter") },
  });
  const server = await serve(gateway, { port: 0 });
  try {
    const { secret } = await gateway.keys.create({ organizationId, userId: "ada", label: name });
    const code = block
      .replaceAll("http://127.0.0.1:8787", server.url)
      .replaceAll("<the key>", secret);
    await writeFile(join(home, "note.txt"), "The word is heron.\n");
    await runCommands(client, code, { place, home, secret });
    deepStrictEqual((await recordOf(gateway, organizationId)).places, client.record);
  } finally {
    await server.close();
    await gateway.close();
  }
}

/** Reads a guide's version of the client, and its block. */
async function readGuide({ page, version, block: { language, has }, variant }: GuidedClient) {
  const markdown = await readFile(new URL(page, pages), "utf8");
  const named = version.exec(markdown)?.[1];
  const block = snippets(markdown, [language]).find(({ code }) => code.includes(has))?.code;
  if (named === undefined) throw new Error(`${page} names no version that matches ${version}.`);
  if (block === undefined) throw new Error(`${page} has no ${language} block with ${has}.`);
  if (variant === undefined) return { version: named, block };
  const other = variant.by.exec(markdown)?.[1];
  if (other === undefined || !block.includes(variant.part))
    throw new Error(`${page} has no variant of ${variant.part}.`);
  return { version: named, block: block.replace(variant.part, other) };
}

/** Runs a client's commands. A proxy that doesn't exist keeps its other requests, such as telemetry, on this machine. */
async function runCommands(
  { file, commands, stop }: GuidedClient,
  code: string,
  { place, home, secret }: Readonly<Record<"place" | "home" | "secret", string>>,
): Promise<void> {
  if (file !== null) {
    await mkdir(dirname(join(home, file.path)), { recursive: true });
    await writeFile(join(home, file.path), `${code}\n${file.more ?? ""}`);
  }
  const own = headlessEnvironment(home);
  const closed = "http://127.0.0.1:9";
  const env = {
    ...own,
    PATH: [join(place, "node_modules/.bin"), own.PATH].join(delimiter),
    TOLLGATE_KEY: secret,
    HTTP_PROXY: closed,
    HTTPS_PROXY: closed,
    NO_PROXY: "127.0.0.1,localhost",
    NODE_USE_ENV_PROXY: "1",
    DO_NOT_TRACK: "1",
  };
  const script = file === null ? `${code}\n${commands}` : commands;
  const shell = async (line: string) => {
    const bounded = ["--kill-after=5", `${maxSeconds}`, "sh", "-euc", line];
    const running = run("timeout", bounded, { cwd: home, env });
    running.child.stdin?.end();
    await running;
  };
  try {
    await shell(script);
  } finally {
    if (stop !== undefined) await shell(stop);
  }
}

/** The model calls the client's tool after the first prompt, and else answers in words. */
function answer({ request }: ScriptedCall, { tool }: GuidedClient) {
  const last = request.messages.at(-1);
  const offered = request.tools?.some(({ name }) => name === tool?.name) ?? false;
  const asked = last?.role === "user" && JSON.stringify(last).includes(prompts[0]);
  if (tool !== null && offered && asked) return { toolCalls: [tool] };
  return { text: "A heron." };
}
