import type { TableName } from "./tables.ts";

/** A value that both clients accept and return; bytes may be returned as any view. */
export type SqlValue = string | number | Uint8Array | null;

/**
 * The differences between SQLite and PostgreSQL. The statements themselves use what both have, above all `ON CONFLICT`, so a
 * database without it, such as MySQL, needs its own statements.
 */
export interface SqlDialect {
  /** The placeholder of the parameter at a position, counted from 1. */
  placeholder(position: number): string;
  /** Column types; text sorts by its bytes. */
  readonly text: string;
  readonly integer: string;
  readonly bytes: string;
  /** An expression for text that nobody can guess. */
  readonly secret: string;
  /** The clause after the columns of a table that is read only by its primary key. */
  readonly keyedTable: string;
  /** The clause for a table of wide rows, which are written in the order of arrival. */
  readonly wideTable: string;
  /** The clause for the table of Steps, whose rows are wide and are removed when they are old. */
  readonly stepsTable: string;
  /** The tables that have another name, further columns or another primary key in this database. Null for one it lacks. */
  readonly tables: {
    readonly [Table in TableName]?: {
      readonly name?: string;
      readonly columns?: string;
      readonly key?: string;
    } | null;
  };
  /** The statements of the schema that only this database needs. */
  readonly additions: readonly string[];
  /** A condition: the column equals one of the values of a list parameter. */
  isOneOf(column: string, parameter: string): string;
  /** A condition: the column's text contains the parameter's. */
  contains(column: string, parameter: string): string;
  /** An expression: the columns' texts as a JSON array. */
  jsonArray(columns: readonly string[]): string;
  /** Joins a page of a table's rows, as `r`, to each organization `o` of a FROM. */
  joinPage(table: string, page: string): string;
  /** Locks the rows that a statement reads until its transaction ends. */
  locked(statement: string): string;
  /** Selects the database's time as `now`, in milliseconds. Null if the database runs on the gateway's clock. */
  readonly databaseTime: string | null;
  /** Updates the progress of a process's open Steps with the renewal of its lease, in the given order. */
  readonly updateProgress: string;
  /** The value of a list parameter. */
  list(values: readonly string[]): SqlValue;
}
