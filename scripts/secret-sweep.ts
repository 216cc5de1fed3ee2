/**
 * Part of every test: nothing shows a whole API key or the platform's credential (S14). That is, no answer that a test
 * reads, no output of it and of processes that it starts, and no bytes that raw clients and scripted upstreams receive.
 * Otherwise, the test that is running fails.
 */
import childProcess, { ChildProcess, type StdioOptions } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { syncBuiltinESMExports } from "node:module";
import { Socket } from "node:net";
import type { Readable } from "node:stream";
import { afterAll, afterEach } from "vitest";

const secret = /\btg_[0-9A-Za-z]{49}\b|\bsk-platform/;
/** How a new key is shown, only once: alone, as a member of JSON or a table, in the command to try, and by the examples. */
const shown =
  /(^ {2}|"secret":\s*"|\bsecret\s+|-H "Authorization: Bearer |Its API key is )tg_[0-9A-Za-z]{49}\b/gm;
/** The credential in the one place where an upstream needs it. */
const presented = /^(authorization: bearer |(x-)?api-key: |x-goog-api-key: )sk-platform/gim;
const maxLine = 65_536;

/** Leaks since the end of the last test that its own code doesn't notice. Test files share their process. */
const leaks = sharedLeaks(Symbol.for("tollgate.secret-sweep"));

/** Returns the leaks that no test has failed for yet, and forgets them. */
export function takeLeaks(): readonly string[] {
  return leaks.found.splice(0);
}

/** For the output of a command that a test runs in its own process. */
export function sweepOutput(text: string): void {
  sweep(text.replace(shown, ""), "The output of a command");
}

function failForLeaks(): void {
  const found = takeLeaks();
  if (found.length > 0) throw new Error([...new Set(found)].join("\n"));
}

afterEach(failForLeaks);
afterAll(failForLeaks);

if (!leaks.isWatching) {
  leaks.isWatching = true;
  sweepAnswers();
  sweepConsole();
  sweepProcesses();
  subscribe("tollgate.testing.client", (message) =>
    watch(socketOf(message), "An answer", (text) => text),
  );
  subscribe("tollgate.testing.upstream", (message) =>
    watch(socketOf(message), "A request to an upstream", (text) => text.replace(presented, "")),
  );
}

function sharedLeaks(name: symbol): { isWatching: boolean; readonly found: string[] } {
  const none = { isWatching: false, found: [] };
  if (!Reflect.has(globalThis, name)) Reflect.set(globalThis, name, none);
  return Reflect.get(globalThis, name);
}

function leakIn(text: string, what: string): string | null {
  const found = secret.exec(text)?.[0];
  return found === undefined ? null : `${what} contains the secret ${found.slice(0, 7)}….`;
}

function sweep(text: string, what: string): void {
  const leak = leakIn(text, what);
  if (leak !== null) throw new Error(leak);
}

function sweepAnswers(): void {
  const readText = Response.prototype.text;
  Reflect.set(Response.prototype, "text", async function text(this: Response): Promise<string> {
    const body = await readText.call(this);
    sweep(`${JSON.stringify([...this.headers])} ${body}`, "An answer");
    return body;
  });
  Reflect.set(Response.prototype, "json", async function json(this: Response): Promise<unknown> {
    return JSON.parse(await this.text());
  });
}

function sweepConsole(): void {
  for (const name of ["log", "info", "warn", "error", "debug"] as const) {
    const print = console[name];
    console[name] = (...words: readonly unknown[]) => {
      sweep(words.map(String).join(" "), "The output");
      print(...words);
    };
  }
}

/** Reads what processes print, before the test does, and passes on what they would print to this process's output. */
function sweepProcesses(): void {
  const start: unknown = Reflect.get(ChildProcess.prototype, "spawn");
  if (typeof start !== "function") throw new Error("Node starts processes in another way.");
  Reflect.set(ChildProcess.prototype, "spawn", function spawn(this: ChildProcess, options: object) {
    const { stdio, inherited } = withPipes(Reflect.get(options, "stdio"));
    const result: unknown = start.call(this, { ...options, stdio });
    const streams = [null, this.stdout, this.stderr];
    streams.forEach((stream, place) => {
      if (!stream) return;
      watch(stream, "The output of a process", (text) => text.replace(shown, ""));
      if (!inherited.includes(place)) return;
      stream.on("data", (bytes) => (place === 1 ? process.stdout : process.stderr).write(bytes));
    });
    return result;
  });
  const { spawnSync } = childProcess;
  Reflect.set(childProcess, "spawnSync", (...words: Parameters<typeof spawnSync>) => {
    const ended = spawnSync(...words);
    const output = [ended.stdout, ended.stderr].join("\n").replace(shown, "");
    sweep(output, "The output of a process");
    return ended;
  });
  syncBuiltinESMExports();
}

/** The same, with pipes for the output that would be inherited, and where it would. */
function withPipes(stdio: unknown): {
  readonly stdio: StdioOptions;
  readonly inherited: readonly number[];
} {
  const each = Array.isArray(stdio) ? stdio : Array(3).fill(stdio ?? "pipe");
  const isOutput = (how: unknown, place: number) =>
    (place === 1 || place === 2) && (how === "inherit" || how === place);
  return {
    stdio: each.map((how, place) => (isOutput(how, place) ? "pipe" : how)),
    inherited: [...each.keys()].filter((place) => isOutput(each[place], place)),
  };
}

/** Looks for secrets in everything that arrives, whether or not a test reads it. */
function watch(stream: Readable, what: string, allowed: (text: string) => string): void {
  const push = stream.push.bind(stream);
  let line = "";
  stream.push = (bytes: unknown, encoding?: BufferEncoding): boolean => {
    if (bytes instanceof Uint8Array || typeof bytes === "string") {
      const text = line + Buffer.from(bytes).toString("latin1");
      const leak = leakIn(allowed(text), what);
      if (leak !== null) leaks.found.push(leak);
      line = text.slice(Math.max(text.lastIndexOf("\n") + 1, text.length - maxLine));
    }
    return push(bytes, encoding);
  };
}

function socketOf(message: unknown): Socket {
  if (message instanceof Socket) return message;
  throw new Error("A channel of @tollgate/testing publishes something else than sockets.");
}
