import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Tarball } from "../../../../scripts/install/pack-packages.ts";
import { runNpm } from "../../../../scripts/install/run-npm.ts";
import { snippets } from "../../../house/src/markdown.ts";

const guide = join(import.meta.dirname, "../../../../docs/guides/sign-in.md");
const used = [
  "core",
  "next",
  "prices",
  "provider-http",
  "provider-openai",
  "store-engine",
  "store-sql",
  "store-sqlite",
];

/**
 * Writes an app outside the repository from `app-sources`, the Next version that the lock file in `locked` names, the
 * packed packages, and the sign-in code of the guide.
 */
export function createApp(folder: string, locked: string, packages: readonly Tarball[]): void {
  cpSync(join(import.meta.dirname, "app-sources"), folder, { recursive: true });
  for (const file of ["package.json", "package-lock.json"])
    cpSync(join(locked, file), join(folder, file));
  for (const { file, code } of snippets(readFileSync(guide, "utf8"), ["js"])) {
    if (file === null) throw new Error(`A js snippet in ${guide} names no file.`);
    writeFileSync(join(folder, file), `${code}\n`);
  }
  const tarballs = packages.filter(({ manifest }) =>
    used.some((name) => manifest.name === `@tollgate/${name}`),
  );
  runNpm(folder, "install", "--ignore-scripts", ...tarballs.map(({ path }) => path));
}
