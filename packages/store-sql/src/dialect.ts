/** A value as both SQL clients take and give it; bytes may come back as any view. */
export type SqlValue = string | number | Uint8Array | null;

/** What differs between the databases, in one small object. */
export interface SqlDialect {
  /** The placeholder of the parameter at a position, from 1. */
  placeholder(position: number): string;
  /** Column types; text sorts by its bytes. */
  readonly text: string;
  readonly integer: string;
  readonly bytes: string;
  /** The clause after the columns of a table that only its primary key serves. */
  readonly keyedTable: string;
  /** The clause for a table of wide rows, which are written in the order of their arrival. */
  readonly wideTable: string;
  /** The clause for the table of Steps, whose rows are wide and removed when old. */
  readonly stepsTable: string;
  /** Columns that a Step has here besides, each with its type and a comma: where Steps go one by one, theirs may be moved. */
  readonly stepsBesides: string;
  /** The table of holds: of all, or of those alone whose Step does not carry them. */
  readonly holdsTable: string;
  /** The statement of an index for lists of the Sessions of a key, of whatever source; none where each source is asked. */
  readonly sessionsByKey: readonly string[];
  /** What follows the number of a leaf, and what follows the columns of a leaf: what tells it from others. */
  readonly leafNumber: string;
  readonly leafKey: string;
  /** A condition: the column equals one of the values of a list parameter. */
  isOneOf(column: string, parameter: string): string;
  /** A condition: the column's text has the parameter's in it. */
  contains(column: string, parameter: string): string;
  /** Joins, to each organization `o` of a FROM, as `r` the rows of a table that a page of it holds. */
  joinPage(table: string, page: string): string;
  /** A statement whose rows stay as they are read until its transaction ends. */
  locked(statement: string): string;
  /** Selects the database's time as `now`, in milliseconds. Null if the database runs on the gateway's clock. */
  readonly databaseTime: string | null;
  /** Updates the progress of an open Step with the renewal of its process's lease. */
  readonly updateProgress: string;
  /** The value of a list parameter. */
  list(values: readonly string[]): SqlValue;
}
