import type { SqlParameters } from "./statement.ts";

/** A request of a script to its database. */
export type Ask =
  | {
      readonly wants: "changes" | "rows";
      readonly text: string;
      readonly parameters: SqlParameters;
      /** Whether its text is a constant, so that it can be prepared once. */
      readonly isConstant: boolean;
    }
  /** The next number of the store's sequence. */
  | { readonly wants: "number" }
  /** Counts a change of the budgets. */
  | { readonly wants: "new budgets version" };

/** The rows, and the number of changed rows or the requested number. */
export interface Answer {
  readonly rows: readonly unknown[];
  readonly count: number;
}

/**
 * Work on a database, written once for synchronous and asynchronous clients. It yields each request and continues with
 * the answer. An error ends it.
 */
export type Script<Result> = Generator<Ask, Result, Answer>;

/** A database that runs scripts. */
export interface ScriptDatabase {
  /** Runs a script in which each statement sees the state committed before it. */
  read<Result>(script: () => Script<Result>): Promise<Result>;
  /**
   * Runs a script in one transaction. If it is unknown whether an earlier run committed, it runs again only with
   * `evenIfDone`; otherwise the promise rejects.
   */
  write<Result>(script: () => Script<Result>, repeatable: Repeatable): Promise<Result>;
  /**
   * A number up to which the store's sequence is settled: every transaction that took such a number has ended, so later
   * reads see what it wrote.
   */
  settled(): Promise<number>;
}

/** Whether the work may run again although an earlier run may have committed. */
interface Repeatable {
  readonly evenIfDone: boolean;
}

export const anyway: Repeatable = { evenIfDone: true };
/** The decision depends on the rows, so it would differ after its own change. */
export const once: Repeatable = { evenIfDone: false };

/** Runs a script with a synchronous client. */
export function play<Result>(script: Script<Result>, answer: (ask: Ask) => Answer): Result {
  let step = script.next();
  while (!step.done) step = script.next(answer(step.value));
  return step.value;
}

/** Runs a script with an asynchronous client. */
export async function playLater<Result>(
  script: Script<Result>,
  answer: (ask: Ask) => Promise<Answer>,
): Promise<Result> {
  let step = script.next();
  while (!step.done) step = script.next(await answer(step.value));
  return step.value;
}

/** Runs a statement of constant text and returns the number of changed rows. */
export function* run(text: string, parameters: SqlParameters): Script<number> {
  return (yield { wants: "changes", text, parameters, isConstant: true }).count;
}

/** The rows of a statement of constant text. */
export function* all(text: string, parameters: SqlParameters): Script<readonly unknown[]> {
  return (yield { wants: "rows", text, parameters, isConstant: true }).rows;
}

/** Its first row; undefined if there is none. */
export function* get(text: string, parameters: SqlParameters): Script<unknown> {
  return (yield* all(text, parameters))[0];
}

/** Its first row as a record; null if there is none. */
export function* find<Record>(
  text: string,
  parameters: SqlParameters,
  fromRow: (row: unknown) => Record,
): Script<Record | null> {
  const row = yield* get(text, parameters);
  return row === undefined ? null : fromRow(row);
}

/** The rows of a statement whose text was built from a filter. */
export function* query(text: string, parameters: SqlParameters): Script<readonly unknown[]> {
  return (yield { wants: "rows", text, parameters, isConstant: false }).rows;
}

export function* nextNumber(): Script<number> {
  return (yield { wants: "number" }).count;
}

export function* countBudgetsChange(): Script<void> {
  yield { wants: "new budgets version" };
}
