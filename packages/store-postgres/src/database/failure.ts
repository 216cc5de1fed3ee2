/** The consequences of a failure for the change that failed. */
export interface FailureKind {
  /** Whether the connection is broken. */
  readonly isLost: boolean;
  /** Whether the change may have committed. */
  readonly isUnsure: boolean;
  /** Whether a retry can help. */
  readonly isPassing: boolean;
  /** Whether the server did not answer in time. A retry may wait as long again. */
  readonly isTimeout: boolean;
}

/** A failure of the database. Contains no written data. */
export class PostgresFailure extends Error {
  override readonly name = "PostgresFailure";
  readonly kind: FailureKind;
  /** The server's SQLSTATE, if it sent one. */
  readonly state: string | null;
  /** The table of a unique violation. */
  readonly table: string | null;

  constructor(
    problem: string,
    kind: Partial<FailureKind> = {},
    state: string | null = null,
    table: string | null = null,
  ) {
    super(`PostgreSQL store: ${problem}`);
    this.state = state;
    this.table = table;
    this.kind = { isLost: false, isUnsure: false, isPassing: false, isTimeout: false, ...kind };
  }
}

/** SQLSTATE of a unique violation. */
export const uniqueViolation = "23505";
/** SQLSTATE of a lock timeout. */
const lockTimeout = "55P03";

/**
 * SQLSTATEs after which the whole change runs again: serialization, deadlock, lock or statement timeout, unique
 * violation.
 */
const rolledBack: ReadonlySet<string> = new Set([
  ...["40001", "40P01", lockTimeout, "57014"],
  uniqueViolation,
]);

/** Whether a statement gave up its wait for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof PostgresFailure && error.state === lockTimeout;
}

/** Whether the failed change may have committed. */
export function mayBeDone(error: unknown): boolean {
  return error instanceof PostgresFailure && error.kind.isUnsure;
}

/** The server is starting, stopping, full or read-only. Another connection may reach it or its successor. */
const unavailable = /^(08|57P|53|25006|25P0[34])/;

/**
 * The connection's prepared statements aren't those that its client knows, because the application or a pooler dropped
 * them, or a pooler changed the connection. Nothing ran. The client doesn't notice, so it can't be used again.
 */
const otherStatements: ReadonlySet<string> = new Set(["26000", "42P05"]);

/** Whether a statement failed only because of its name. */
export function isOfName(failure: PostgresFailure): boolean {
  return failure.state !== null && otherStatements.has(failure.state);
}

/** Converts a client error during a statement. `commits` says whether the statement was one that commits. */
export function queryFailure(thrown: unknown, commits: boolean): PostgresFailure {
  const message = thrown instanceof Error ? thrown.message : "the client failed";
  const state = sqlState(thrown);
  if (state === null) {
    const isTimeout = /timeout|timed out/i.test(message);
    return new PostgresFailure(message, {
      isLost: true,
      isUnsure: commits,
      isPassing: true,
      isTimeout,
    });
  }
  const problem = `${message} (${state})`;
  return new PostgresFailure(problem, kindOf(state, commits), state, tableOf(thrown));
}

function kindOf(state: string, commits: boolean): Partial<FailureKind> {
  if (rolledBack.has(state)) return { isPassing: true };
  if (otherStatements.has(state)) return { isLost: true, isPassing: true };
  if (unavailable.test(state)) return { isLost: true, isUnsure: commits, isPassing: true };
  return {};
}

/** Converts an error from opening a connection: nothing was sent. */
export function connectFailure(thrown: unknown): PostgresFailure {
  const { message, kind } = queryFailure(thrown, false);
  const problem = `cannot connect: ${message.slice("PostgreSQL store: ".length)}`;
  return new PostgresFailure(problem, { isPassing: kind.isLost, isTimeout: kind.isTimeout });
}

/** The SQLSTATE of an error that the server sent; null for any other. */
function sqlState(thrown: unknown): string | null {
  if (!(thrown instanceof Error) || !("severity" in thrown) || !("code" in thrown)) return null;
  return typeof thrown.code === "string" ? thrown.code : null;
}

function tableOf(thrown: unknown): string | null {
  if (!(thrown instanceof Error) || !("table" in thrown)) return null;
  return typeof thrown.table === "string" ? thrown.table : null;
}
