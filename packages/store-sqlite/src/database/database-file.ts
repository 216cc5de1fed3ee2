import { statSync } from "node:fs";
import { storeFailure } from "./failure.ts";

/** The file behind a connection, and whether it is still the one that was opened. */
export interface DatabaseFile {
  /** Throws when the file was removed or another stands in its place: what were written now would be lost. */
  check(): void;
}

/** `path` is empty for a database in memory. */
export function watchFile(path: string): DatabaseFile {
  if (path === "") return { check() {} };
  const opened = identityOf(path);
  return {
    check() {
      const now = identityOf(path);
      if (now === null) throw storeFailure("the database file was removed while it was open");
      if (now !== opened) throw storeFailure("the database file was replaced while it was open");
    },
  };
}

function identityOf(path: string): string | null {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat ? `${stat.dev}/${stat.ino}` : null;
}
