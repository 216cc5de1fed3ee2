import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { sqliteStore } from "../src/index.ts";

/** A path in a folder of its own that goes when the test ends. */
export function temporaryFile(name = "tollgate.db"): string {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-sqlite-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, name);
}

/** Paths of empty databases that are migrated already: copies of one, for the tests of one file. */
export function migratedFiles(): () => string {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-sqlite-"));
  const template = join(folder, "template.db");
  beforeAll(async () => {
    const store = sqliteStore({ filename: template });
    await store.migrate();
    await store.close();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return () => {
    const copy = temporaryFile();
    copyFileSync(template, copy);
    return copy;
  };
}
