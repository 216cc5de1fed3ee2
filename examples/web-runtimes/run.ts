// Runs the example on Bun or Deno: `npm run example:bun`, `npm run example:deno`. It installs the runtime into a
// temporary folder and removes it afterwards.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const runtimes = {
  bun: { install: "bun@1.4.5", words: ["--conditions=tollgate-source"] },
  deno: {
    install: "deno@2.9.6",
    words: ["run", "--conditions=tollgate-source", "--allow-net=127.0.0.1", "--allow-read"],
  },
} as const;

const [, , name] = process.argv;
if (name !== "bun" && name !== "deno") throw new Error("Name a runtime: bun or deno.");
const { install, words } = runtimes[name];
const folder = mkdtempSync(join(tmpdir(), `tollgate-${name}-`));
const run = (command: string, given: readonly string[]): void => {
  const env = { ...process.env, DENO_DIR: folder, DENO_NO_UPDATE_CHECK: "1" };
  execFileSync(command, given, { env, stdio: "inherit", timeout: 120_000 });
};

try {
  run("npm", [
    "install",
    "--no-save",
    "--no-audit",
    "--no-fund",
    "--silent",
    "--prefix",
    folder,
    install,
  ]);
  run(join(folder, "node_modules", ".bin", name), [...words, `${import.meta.dirname}/${name}.ts`]);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
