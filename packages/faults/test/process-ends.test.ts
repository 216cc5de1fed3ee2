import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const script = fileURLToPath(new URL("../src/in-process.ts", import.meta.url));

/** Runs the script until it ends by itself. */
function runScript(mode: string): Promise<{ readonly code: unknown; readonly printed: string }> {
  const words = ["--no-warnings", script, mode];
  return new Promise((resolve) => {
    execFile(process.execPath, words, { timeout: 20_000 }, (error, printed) =>
      resolve({ code: error ? error.code : 0, printed }),
    );
  });
}

it("P1 a process stays alive while a call waits for its retry, and exits once nothing runs (H5)", async () => {
  expect(await runScript("retry")).toEqual({
    code: 0,
    printed: "completed\n200 after 2 calls\n",
  });
});

it("P1 a process stays alive until the deadline of its open Step (H5)", async () => {
  expect(await runScript("deadline")).toEqual({ code: 0, printed: "failed\n" });
});
