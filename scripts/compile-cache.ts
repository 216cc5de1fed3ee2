import { globSync, rmSync } from "node:fs";

/** A run of the whole suite leaves some hundreds. */
const maxFiles = 10_000;

/**
 * A folder for Node's compile cache. Node never removes anything from it, and each run adds its test files under new
 * addresses, so this empties it once it has too many files.
 */
export function compileCache(folder: string): string {
  const cached = globSync("*/*", { cwd: folder });
  if (cached.length > maxFiles) rmSync(folder, { recursive: true, force: true });
  return folder;
}
