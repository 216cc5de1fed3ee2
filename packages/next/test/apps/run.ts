// Tests the binding in real, built Next apps of every supported major: `npm run test:next`, or `npm run test:next -- 15`
// for one of them. One app runs the binding contract. The other is installed outside the checkout from the packed
// packages. Each major has its own lock file, so the checkout doesn't have to install them.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { packPackages } from "../../../../scripts/install/pack-packages.ts";
import { createApp } from "./create-app.ts";

const [only] = process.argv.slice(2);
const versions = only === undefined ? ["15", "16"] : [only];
const repository = resolve(import.meta.dirname, "../../../..");
const vitest = join(repository, "node_modules/vitest/vitest.mjs");
const scratch = mkdtempSync(join(tmpdir(), "tollgate-next-"));

try {
  const tarballs = packPackages(repository, scratch);
  for (const version of versions) {
    const directory = `${import.meta.dirname}/next-${version}`;
    const app = join(scratch, `app-${version}`);
    const run = (command: string, words: readonly string[], cwd = directory): void => {
      const env = {
        ...process.env,
        NEXT_VERSION: version,
        NEXT_APP: app,
        NEXT_TELEMETRY_DISABLED: "1",
      };
      execFileSync(command, words, { cwd, env, stdio: "inherit" });
    };
    run("npm", ["ci", "--ignore-scripts"]);
    createApp(app, directory, tarballs);
    for (const built of [directory, app])
      run("node", ["node_modules/next/dist/bin/next", "build"], built);
    // Not through npx, which would start in packages/next and run its own tests.
    run("node", [vitest, "run", "--root", import.meta.dirname], repository);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
