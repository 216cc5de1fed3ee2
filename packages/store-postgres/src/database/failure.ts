/** What a failure says about the change it befell. */
export interface FailureKind {
  /** Whether the connection is of no use any more. */
  readonly isLost: boolean;
  /** Whether a commit may have happened although nobody was told. */
  readonly isUnsure: boolean;
  /** Whether trying again at once can help. */
  readonly isPassing: boolean;
  /** Whether the time to wait for an answer ran out, so that trying again costs as much once more. */
  readonly isTimeout: boolean;
}

/** A failure of the database in words of the store. Holds nothing of what was written. */
export class PostgresFailure extends Error {
  override readonly name = "PostgresFailure";
  readonly kind: FailureKind;
  /** SQLSTATE, where the server said what is the matter. */
  readonly state: string | null;
  /** The table whose row was there before, where that is the matter. */
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

/** SQLSTATE of a row whose key another row has. */
export const uniqueViolation = "23505";

/** Rolled back by the server, and to be run again as a whole: serialization, deadlock, lock or statement timeout, key race. */
const rolledBack: ReadonlySet<string> = new Set([
  ...["40001", "40P01", "55P03", "57014"],
  uniqueViolation,
]);

/** The server goes, comes, is full or takes no writes: another connection may find it, or its successor. */
const unavailable = /^(08|57P|53|25006|25P0[34])/;

/** Any error of the client while it ran a statement. `commits`: the statement was one that commits. */
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
  if (rolledBack.has(state))
    return new PostgresFailure(problem, { isPassing: true }, state, tableOf(thrown));
  if (unavailable.test(state))
    return new PostgresFailure(
      problem,
      { isLost: true, isUnsure: commits, isPassing: true },
      state,
    );
  return new PostgresFailure(problem, {}, state);
}

/** Any error while a connection was opened: nothing was sent. */
export function connectFailure(thrown: unknown): PostgresFailure {
  const { message, kind } = queryFailure(thrown, false);
  const problem = `cannot connect: ${message.slice("PostgreSQL store: ".length)}`;
  return new PostgresFailure(problem, { isPassing: kind.isLost, isTimeout: kind.isTimeout });
}

/** The five characters of an error that the server sent; null for any other. */
function sqlState(thrown: unknown): string | null {
  if (!(thrown instanceof Error) || !("severity" in thrown) || !("code" in thrown)) return null;
  return typeof thrown.code === "string" ? thrown.code : null;
}

function tableOf(thrown: unknown): string | null {
  if (!(thrown instanceof Error) || !("table" in thrown)) return null;
  return typeof thrown.table === "string" ? thrown.table : null;
}
