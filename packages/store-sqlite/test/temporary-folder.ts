import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A path in a folder of its own that goes when the test ends. */
export function temporaryFile(name = "tollgate.db"): string {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-sqlite-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, name);
}
