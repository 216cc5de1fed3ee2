import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Gateway } from "@tollgate/core";
import { z } from "zod";

const run = promisify(execFile);
const maxInstallMs = 300_000;
const manifestSchema = z.object({ version: z.string() });

/** Installs packages from npm, given as `name` or `name@version`, into a folder. Returns their names and versions. */
export async function installFromNpm(
  folder: string,
  packages: readonly string[],
): Promise<readonly string[]> {
  await writeFile(join(folder, "package.json"), "{}");
  const options = { cwd: folder, timeout: maxInstallMs };
  await run("npm", ["install", "--no-audit", "--no-fund", ...packages], options);
  return Promise.all(
    packages.map(async (wanted) => {
      const name = wanted.replace(/(?<=.)@[^/]*$/, "");
      const manifest = await readFile(join(folder, "node_modules", name, "package.json"), "utf8");
      return `${name} ${manifestSchema.parse(JSON.parse(manifest)).version}`;
    }),
  );
}

/** The environment of a client with its own home, and nothing of this process but its search path. */
export const headlessEnvironment = (home: string) => ({
  PATH: process.env["PATH"] ?? "",
  HOME: home,
});

/** Tries each one, and prints a line for it. Makes the process exit with 1 if one fails. */
export async function reportEach<One>(
  all: readonly One[],
  name: (one: One) => string,
  attempt: (one: One) => Promise<void>,
): Promise<void> {
  for (const one of all) {
    const problem = await attempt(one).then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    process.stdout.write(`${name(one)}: ${problem ?? "pass"}\n`);
    if (problem !== null) process.exitCode = 1;
  }
}

/** Returns the recorded Steps, oldest first, and the Session, the Turn and the number of each. */
export async function recordOf(gateway: Gateway, organizationId: string) {
  const { data } = await gateway.steps.list({ organizationId });
  const made = data.toReversed();
  const sessions = [...new Set(made.map(({ sessionId }) => sessionId))];
  const turns = [...new Set(made.map(({ turnId }) => turnId))];
  const places = made.map((step) => [
    sessions.indexOf(step.sessionId),
    turns.indexOf(step.turnId),
    step.stepNumber,
  ]);
  return { made, places };
}
