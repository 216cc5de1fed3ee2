/** SQLite's primary result codes that the store tells apart. */
const busy = 5;

/** Whether another connection holds the lock that this one needs. */
export function isBusy(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  // node:sqlite carries the extended code as a number, better-sqlite3 its name.
  const number: unknown = Reflect.get(thrown, "errcode");
  if (typeof number === "number") return (number & 0xff) === busy;
  const name: unknown = Reflect.get(thrown, "code");
  return typeof name === "string" && /^SQLITE_BUSY(_|$)/.test(name);
}

/** A failure of the database in words of the store, with what SQLite said as its cause. */
export function storeFailure(problem: string, cause?: unknown): Error {
  const detail = cause instanceof Error ? `: ${cause.message}` : "";
  return new Error(`SQLite store: ${problem}${detail}`, cause === undefined ? {} : { cause });
}
