import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

const binary = fileURLToPath(new URL("../bin/tollgate.js", import.meta.url));
const maxRunMs = 20_000;

/** A configuration for tests: a paced model and a database in `folder`. */
export const pacedConfiguration = fileURLToPath(new URL("./paced.config.ts", import.meta.url));

/** The exit code and the output of a command. */
export interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Creates a folder that is removed after the file's tests. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-cli-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a command. */
export function launch(
  folder: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input: "ignore" | "pipe" = "ignore",
  into: number | "pipe" = "pipe",
): ChildProcess {
  const child = spawn("node", [binary, ...words], {
    cwd: folder,
    stdio: [input, into, "pipe"],
    env: { PATH: process.env["PATH"], ...environment },
  });
  const expired = setTimeout(() => child.kill("SIGKILL"), maxRunMs);
  child.once("exit", () => clearTimeout(expired));
  return child;
}

async function textOf(stream: NodeJS.ReadableStream | null): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream ?? []) parts.push(Buffer.from(part));
  return Buffer.concat(parts).toString();
}

/** Runs a command with `input` on standard input, and with `into`, an open file, as its standard output. */
export async function run(
  folder: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input?: string,
  into?: number,
): Promise<Ended> {
  const stdin = input === undefined ? "ignore" : "pipe";
  const child = launch(folder, words, environment, stdin, into);
  // A command may close the pipe before reading everything.
  child.stdin?.on("error", () => {}).end(input);
  const [output, errors] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return { code: child.exitCode, output, errors };
}

/** Returns the JSON document that a command prints with `--json`. */
export async function runJson(folder: string, ...words: readonly string[]): Promise<unknown> {
  return readJson(words, await run(folder, [...words, "--json"]));
}

/** The JSON document that a command has printed. */
export function readJson(words: readonly string[], { code, output, errors }: Ended): unknown {
  if (code !== 0) throw new Error(`${words.join(" ")} exited with ${code}: ${errors}`);
  return JSON.parse(output);
}

/** A running `tollgate serve` on a free port. */
export interface Served {
  readonly child: ChildProcess;
  readonly url: string;
  /** The output up to the command to try. */
  readonly announced: string;
  /** The standard error output so far. */
  readonly errors: () => string;
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>;
}

export async function startServe(
  folder: string,
  words: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<Served> {
  const child = launch(folder, ["serve", "--port", "0", ...words], environment);
  const exited = once(child, "exit").then(() => child.exitCode);
  afterAll(() => void child.kill("SIGKILL"));
  const written: Buffer[] = [];
  const errors = () => Buffer.concat(written).toString();
  child.stderr?.on("data", (part: Buffer) => written.push(part));
  const lines: string[] = [];
  if (child.stdout) {
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line);
      if (line.includes("curl ")) break;
    }
    child.stdout.resume();
  }
  const announced = lines.join("\n");
  const url = /http:\/\/\S+:\d+/.exec(announced)?.[0];
  if (url === undefined) throw new Error(`serve printed no address: ${announced}${errors()}`);
  return { child, url, announced, exited, errors };
}

/** Calls the built-in model. */
export function chat(
  url: string,
  { secret, text, stream = false }: { secret: string; text: string; stream?: boolean },
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "sim/tollgate/echo",
      stream,
      messages: [{ role: "user", content: text }],
    }),
  });
}
