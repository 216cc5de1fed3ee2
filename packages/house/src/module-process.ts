import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

const maxModuleMs = 60_000;
const program = fileURLToPath(new URL("run-modules.ts", import.meta.url));

/** A process that runs one module after the other, which share the packages that they load. */
export interface ModuleProcess {
  /**
   * Runs a module in its folder until nothing is left to do, and returns its output.
   * @throws Error with all output of a module that fails; the next one gets a new process
   */
  run(path: string): Promise<string>;
  stop(): Promise<void>;
}

/** Starts the process with the first module. */
export function moduleProcess(): ModuleProcess {
  const mark = randomUUID();
  let child: Child | null = null;
  return {
    async run(path) {
      child ??= start(mark);
      try {
        return await outputOf(child, path, mark);
      } catch (error) {
        child = null;
        throw error;
      }
    },
    async stop() {
      if (child === null) return;
      const ended = once(child.process, "exit");
      child.paths.end();
      await ended;
    },
  };
}

interface Child {
  readonly process: ChildProcess;
  readonly paths: Writable;
  readonly output: Readable;
  readonly errors: Readable;
}

function start(mark: string): Child {
  // Modules may use the standard input, so the paths have a pipe of their own.
  const process = spawn("node", [program, mark], { stdio: ["ignore", "pipe", "pipe", "pipe"] });
  const { stdout: output, stderr: errors } = process;
  const paths = process.stdio[3];
  if (!(output && errors && paths instanceof Writable))
    throw new Error("A process needs its pipes.");
  // A process that ends is noticed by its exit.
  paths.on("error", () => {});
  return { process, paths, output, errors };
}

/** Everything that a module prints, up to the mark. @throws Error with all output if the process ends instead. */
function outputOf(child: Child, path: string, mark: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const expired = setTimeout(() => child.process.kill("SIGKILL"), maxModuleMs);
  let output = "";
  let errors = "";
  const read = (bytes: Buffer) => {
    output += bytes;
    if (output.endsWith(mark)) resolve(output.slice(0, -mark.length));
  };
  const readErrors = (bytes: Buffer) => {
    errors += bytes;
  };
  const end = (code: number | null) =>
    reject(new Error(`${path} ended with ${code}:\n${output}${errors}`));
  child.output.on("data", read);
  child.errors.on("data", readErrors);
  child.process.once("close", end);
  child.paths.write(`${path}\n`);
  return promise.finally(() => {
    clearTimeout(expired);
    child.output.off("data", read);
    child.errors.off("data", readErrors);
    child.process.off("close", end);
  });
}
