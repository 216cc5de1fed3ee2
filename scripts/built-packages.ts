/** Tests that start processes of the product use the built packages, which load in half the time. */
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "tsup";
import { entryPoints, publishedPackages } from "./workspaces.ts";

const root = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");
const stamp = `${root}/node_modules/.cache/built-packages`;
const inputs = [
  "packages/*/src/**/*.{ts,json}",
  "packages/*/package.json",
  "scripts/tsup.config.ts",
];

/** A global setup: builds the packages, unless the last build used the same sources and is unchanged. */
export default async function setup(): Promise<void> {
  const known = existsSync(stamp) ? readFileSync(stamp, "utf8") : null;
  if (known === fingerprint()) return;
  // This build makes no declarations, so it keeps the existing ones.
  await build({ config: `${root}/scripts/tsup.config.ts`, silent: true, clean: false });
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, fingerprint());
}

function fingerprint(): string {
  const hash = createHash("sha256");
  for (const path of globSync([...inputs, "package-lock.json"], { cwd: root }).sort())
    hash
      .update(path)
      .update("\0")
      .update(readFileSync(`${root}/${path}`))
      .update("\0");
  for (const path of publishedPackages(root).flatMap(entryPoints).map(built))
    hash.update(`${path} ${statSync(`${root}/${path}`, { throwIfNoEntry: false })?.mtimeMs}\n`);
  return hash.digest("hex");
}

/** The file that the build makes of an entry point. */
function built(entryPoint: string): string {
  return entryPoint.replace("/src/", "/dist/").replace(/\.ts$/, ".js");
}
