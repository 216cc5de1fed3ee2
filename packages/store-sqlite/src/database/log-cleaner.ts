import { readRow } from "@tollgate/store-sql";
import type { SqliteConnection } from "./connection.ts";

/** Empties the write-ahead log after deletions: until then it holds the deleted bytes as they were written. */
export interface LogCleaner {
  cleanSoon(): void;
  /** Tries once more where something is left to clean. */
  close(): void;
}

/** Deletions within this time share one checkpoint, off the path of any request. Milliseconds. */
const delay = 1_000;
/** While another process reads or writes, the log can't be emptied. The next deletion or sweep tries again. */
const maxTries = 60;

export function createLogCleaner(connection: () => SqliteConnection | null): LogCleaner {
  let timer: NodeJS.Timeout | null = null;
  let tries = 0;

  function clean(): void {
    timer = null;
    if (!isEmptied(connection()) && ++tries < maxTries) schedule();
  }
  function schedule(): void {
    timer ??= setTimeout(clean, delay).unref();
  }
  return {
    cleanSoon() {
      tries = 0;
      schedule();
    },
    close() {
      if (timer === null) return;
      clearTimeout(timer);
      isEmptied(connection());
    },
  };
}

function isEmptied(connection: SqliteConnection | null): boolean {
  if (connection === null) return true;
  try {
    const [row] = connection.query("PRAGMA wal_checkpoint(TRUNCATE)", {});
    return readRow(row).integer("busy") === 0;
  } catch {
    return false;
  }
}
