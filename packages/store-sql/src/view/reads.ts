import type { SqlParameters } from "../statement.ts";

/** What has the rows of a statement at once: an open database, or what was fetched from one. */
export interface Reads {
  get(text: string, parameters: SqlParameters): unknown;
  all(text: string, parameters: SqlParameters): readonly unknown[];
}
