import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { snippets } from "../packages/house/src/markdown-snippets.ts";
import type { Tarball } from "../scripts/install/pack-packages.ts";
import { runNpm } from "../scripts/install/run-npm.ts";

const guide = join(import.meta.dirname, "../docs/guides/sign-in.md");
const used = [
  "core",
  "next",
  "prices",
  "provider-openai",
  "store-engine",
  "store-sql",
  "store-sqlite",
];

/**
 * Writes an app outside of the repository: the sources of `peers/app`, the Next that the lock file of `peer` names, the
 * packed packages, and the sign-in as the guide shows it.
 */
export function createApp(folder: string, peer: string, packages: readonly Tarball[]): void {
  cpSync(join(import.meta.dirname, "app"), folder, { recursive: true });
  for (const file of ["package.json", "package-lock.json"])
    cpSync(join(peer, file), join(folder, file));
  for (const { file, code } of snippets(readFileSync(guide, "utf8"), ["js"])) {
    if (file === null) throw new Error(`a js snippet of ${guide} names no file`);
    writeFileSync(join(folder, file), `${code}\n`);
  }
  const tarballs = packages.filter(({ manifest }) =>
    used.some((name) => manifest.name === `@tollgate/${name}`),
  );
  runNpm(folder, "install", "--ignore-scripts", ...tarballs.map(({ path }) => path));
}
