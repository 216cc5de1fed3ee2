import { describeFailure } from "./failure.ts";
import { createProgram } from "./program.ts";
import { requireNode } from "./require-node.ts";

/**
 * Runs one command line and sets the exit code: 0 when it did what was asked, 1 when it failed, 2 when it was not
 * understood. `argv` is `process.argv`: the program's own two words, then the arguments.
 */
export async function main(argv: readonly string[]): Promise<void> {
  // A reader such as `head` may leave before everything is printed.
  process.stdout.on("error", () => process.exit());
  try {
    // Other runtimes name a Node they resemble.
    if (!("bun" in process.versions || "deno" in process.versions))
      requireNode(process.versions.node);
    await createProgram().parseAsync([...argv]);
  } catch (thrown) {
    const { exitCode, line } = describeFailure(thrown);
    if (line !== null) process.stderr.write(`${line}\n`);
    process.exitCode = exitCode;
  }
}
