import type { SqlDialect, SqlValue } from "./dialect.ts";

/** Parameters by name. Parameters that a statement does not name are ignored. */
export type SqlParameters = Readonly<Record<string, SqlValue>>;

/** A statement that a database can prepare, and the names of its parameters in order. */
export interface CompiledStatement {
  readonly text: string;
  readonly names: readonly string[];
}

/** Turns `:name` into the dialect's placeholders. The text is always a constant of the source, never input. */
export function compileStatement(
  text: string,
  dialect: Pick<SqlDialect, "placeholder">,
): CompiledStatement {
  const names: string[] = [];
  const compiled = text.replace(/:([a-z_]+)/g, (_, name: string) => {
    names.push(name);
    return dialect.placeholder(names.length);
  });
  return { text: compiled, names };
}

/** The values of a statement's parameters, in its order. Throws for a missing one, which is a mistake in the code. */
export function orderParameters(names: readonly string[], parameters: SqlParameters): SqlValue[] {
  const values: SqlValue[] = [];
  addParameters(values, names, parameters);
  return values;
}

/** Appends a row's values to those of earlier rows. */
export function addParameters(
  values: SqlValue[],
  names: readonly string[],
  parameters: SqlParameters,
): void {
  for (const name of names) {
    const value = parameters[name];
    if (value === undefined) throw new TypeError(`statement parameter ${name} is missing`);
    values.push(value);
  }
}

/** An INSERT of all given columns, each from the parameter of its name. */
export function insertInto(table: string, columns: readonly string[]): string {
  const values = columns.map((column) => `:${column}`);
  return `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${values.join(", ")})`;
}
