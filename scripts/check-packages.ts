// Checks the packed tarballs before they are published: `npm run check:packages -- FOLDER`.
// .ci/run packs them, because this script cannot run npm inside npm.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { publishedPackages, type Workspace } from "./workspaces.ts";

const maxRunMs = 20_000;

type Check = (at: Workspace, tarball: string) => Promise<void>;

const checks: Readonly<Record<string, Check>> = {
  async publint({ manifest }, tarball) {
    const bytes = new Uint8Array(readFileSync(tarball)).buffer;
    const { messages } = await publint({ pack: { tarball: bytes } });
    const problems = messages.filter(({ type }) => type !== "suggestion");
    if (problems.length === 0) return;
    throw new Error(problems.map((problem) => formatMessage(problem, { ...manifest })).join("\n"));
  },

  async types(_, tarball) {
    execFileSync("attw", [tarball, "--profile", "esm-only"], { encoding: "utf8", stdio: "pipe" });
  },

  async starts({ directory, manifest }) {
    for (const binary of Object.values(manifest.bin ?? {})) {
      const command = [join(directory, binary), "--help"];
      execFileSync("node", command, { encoding: "utf8", stdio: "pipe", timeout: maxRunMs });
    }
  },

  async loads({ directory, manifest }) {
    for (const entry of Object.values(manifest.exports ?? {})) {
      if (typeof entry === "string" || entry["default"] === undefined) continue;
      await import(pathToFileURL(join(directory, entry["default"])).href);
    }
  },
};

/** `@tollgate/core` is packed as `tollgate-core-0.1.0.tgz`. */
function tarballOf({ manifest }: Workspace, folder: string): string {
  const stem = manifest.name.replace("@", "").replace("/", "-");
  const file = readdirSync(folder).find((name) => /^-\d.*\.tgz$/.test(name.replace(stem, "")));
  if (file === undefined) throw new Error(`${folder} has no tarball of ${manifest.name}.`);
  return join(folder, file);
}

function explain(error: unknown): string {
  const output = error instanceof Error && "stdout" in error ? String(error.stdout) : "";
  return `${error instanceof Error ? error.message : String(error)}\n${output}`.trim();
}

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error("Usage: npm run check:packages -- FOLDER-OF-TARBALLS (packed by npm pack)");
  process.exit(2);
}
let passed = 0;
let failed = 0;
for (const at of publishedPackages(".")) {
  for (const [name, check] of Object.entries(checks)) {
    if (name === "starts" && at.manifest.bin === undefined) continue;
    try {
      await check(at, tarballOf(at, folder));
      passed++;
    } catch (error) {
      failed++;
      console.error(`${at.manifest.name}: ${name} failed\n${explain(error)}`);
    }
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
