import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** One guard, and how to remove it. */
export interface Guard {
  /** Its row in the fault matrix. */
  readonly row: string;
  /** The effect of the guard. */
  readonly guard: string;
  readonly file: string;
  /** Its source text, which the file contains exactly once. */
  readonly find: string;
  readonly replace: string;
  /** The file of the tests that must fail without it. Absent for tests of this package. */
  readonly tests?: string;
  /** The command that must fail without it, in place of tests. */
  readonly command?: string;
  /** The beginning of their titles; with `tests`, any part. */
  readonly test: string;
}

const fields = ["row", "guard", "file", "find", "replace", "test"];

/** Reads the list of guards. */
export function readGuards(json: string): readonly Guard[] {
  const list: unknown = JSON.parse(json);
  if (!Array.isArray(list)) throw new Error("The list of guards must be an array.");
  return list.map((entry: unknown) => {
    if (isGuard(entry)) return entry;
    throw new Error(`Invalid guard: ${JSON.stringify(entry)}.`);
  });
}

function isGuard(value: unknown): value is Guard {
  return (
    typeof value === "object" &&
    value !== null &&
    fields.every((name) => typeof Reflect.get(value, name) === "string")
  );
}

/** A copy of the repository's working tree, which may be broken at will. */
export interface ScratchCopy {
  readonly root: string;
  remove(): void;
}

const scope = "@tollgate";

/**
 * Copies every file that git tracks or would add. Links installed packages; links between workspaces lead into the
 * copy.
 */
export function scratchCopy(repository: string): ScratchCopy {
  const root = mkdtempSync(join(tmpdir(), "tollgate-guards-"));
  const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], {
    cwd: repository,
    encoding: "utf8",
  });
  const files = listed.split("\0").filter((path) => path !== "");
  for (const path of files) {
    const from = join(repository, path);
    if (existsSync(from)) cpSync(from, join(root, path));
  }
  linkInstalled(join(repository, "node_modules"), join(root, "node_modules"));
  for (const name of readdirSync(join(repository, "packages"))) {
    const nested = join(repository, "packages", name, "node_modules");
    if (existsSync(nested)) link(nested, join(root, "packages", name, "node_modules"));
  }
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) };
}

function linkInstalled(from: string, to: string): void {
  for (const name of readdirSync(from))
    if (name !== scope && !name.startsWith(".")) link(join(from, name), join(to, name));
  // The link of a workspace is relative, so in the copy it leads into the copy.
  for (const name of readdirSync(join(from, scope)))
    link(readlinkSync(join(from, scope, name)), join(to, scope, name));
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}
