import type { SqlParameters } from "./statement.ts";

/** What a script asks its database for. */
export type Ask =
  | {
      readonly wants: "changes" | "rows";
      readonly text: string;
      readonly parameters: SqlParameters;
      /** Whether its text is a constant, to be prepared once. */
      readonly isConstant: boolean;
      /** Whether it passes over all of a table, and may take minutes. */
      readonly isLong: boolean;
    }
  /** The next number of the store's sequence. */
  | { readonly wants: "number" }
  /** Count a change of the budgets. */
  | { readonly wants: "new budgets version" };

/** Rows, and how many rows changed, or the number that was asked for. */
export interface Answer {
  readonly rows: readonly unknown[];
  readonly count: number;
}

/**
 * Work on a database, written once for clients that answer at once and for those that answer later: it yields what it asks
 * for, and goes on with the answer. What fails ends it.
 */
export type Script<Result> = Generator<Ask, Result, Answer>;

/** A database that plays scripts. */
export interface ScriptDatabase {
  /** Each statement sees the state committed before it. */
  read<Result>(script: () => Script<Result>): Promise<Result>;
  /**
   * In one transaction. Where it isn't known whether that was committed, it runs again if it may be `evenIfDone`; else
   * the promise rejects.
   */
  write<Result>(script: () => Script<Result>, repeatable: Repeatable): Promise<Result>;
}

/** Whether work may run again although it may have been done before. */
interface Repeatable {
  readonly evenIfDone: boolean;
}

export const anyway: Repeatable = { evenIfDone: true };
/** The decision depends on the rows, so after its own change it would differ. */
export const once: Repeatable = { evenIfDone: false };

/** Plays a script with a client that answers at once. */
export function play<Result>(script: Script<Result>, answer: (ask: Ask) => Answer): Result {
  let step = script.next();
  while (!step.done) step = script.next(answer(step.value));
  return step.value;
}

/** Plays a script with a client that answers later. */
export async function playLater<Result>(
  script: Script<Result>,
  answer: (ask: Ask) => Promise<Answer>,
): Promise<Result> {
  let step = script.next();
  while (!step.done) step = script.next(await answer(step.value));
  return step.value;
}

/** Runs a statement of constant text; says how many rows changed. */
export function* run(text: string, parameters: SqlParameters): Script<number> {
  return (yield { wants: "changes", text, parameters, isConstant: true, isLong: false }).count;
}

/** The rows of a statement of constant text. */
export function* all(text: string, parameters: SqlParameters): Script<readonly unknown[]> {
  return (yield { wants: "rows", text, parameters, isConstant: true, isLong: false }).rows;
}

/** Its first row; undefined for none. */
export function* get(text: string, parameters: SqlParameters): Script<unknown> {
  return (yield* all(text, parameters))[0];
}

/** The rows of a statement whose text was put together from a filter. */
export function* query(text: string, parameters: SqlParameters): Script<readonly unknown[]> {
  return (yield { wants: "rows", text, parameters, isConstant: false, isLong: false }).rows;
}

/** The rows of a statement that passes over all of a table. */
export function* passOver(text: string, parameters: SqlParameters): Script<readonly unknown[]> {
  return (yield { wants: "rows", text, parameters, isConstant: false, isLong: true }).rows;
}

export function* nextNumber(): Script<number> {
  return (yield { wants: "number" }).count;
}

export function* countBudgetsChange(): Script<void> {
  yield { wants: "new budgets version" };
}
