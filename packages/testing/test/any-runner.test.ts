import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const program = fileURLToPath(new URL("./with-node-test.ts", import.meta.url));

describe("@tollgate/testing", () => {
  it("needs no particular test runner: it works under node:test", async () => {
    const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _context, ...env } = process.env;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--conditions=tollgate-source", "--test-reporter=tap", program],
      { env },
    );
    expect(stdout).toMatch(/^# pass 1$/m);
    expect(stdout).toMatch(/^# fail 0$/m);
  });
});
