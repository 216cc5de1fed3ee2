import type { SqlParameters } from "../statement.ts";

/** Returns the rows of a statement synchronously, from an open database or from rows fetched before. */
export interface Reads {
  get(text: string, parameters: SqlParameters): unknown;
  all(text: string, parameters: SqlParameters): readonly unknown[];
}
