import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { sqliteStore } from "../src/index.ts";

/** A path in a new folder, which is removed after the test. */
export function temporaryFile(name = "tollgate.db"): string {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-sqlite-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, name);
}

/** Paths of migrated, empty databases: copies of one, for all tests of a file. */
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
