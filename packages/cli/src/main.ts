import { describeFailure } from "./failure.ts";
import { createProgram } from "./program.ts";

/**
 * Runs one command line and sets the exit code: 0 when it did what was asked, 1 when it failed, 2 when it was not
 * understood. `argv` is `process.argv`: the program's own two words, then the arguments.
 */
export async function main(argv: readonly string[]): Promise<void> {
  // A reader such as `head` may leave before everything is printed.
  process.stdout.on("error", () => process.exit());
  try {
    await createProgram().parseAsync([...argv]);
  } catch (thrown) {
    const { exitCode, line } = describeFailure(thrown);
    if (line !== null) process.stderr.write(`${line}\n`);
    process.exitCode = exitCode;
  }
}
