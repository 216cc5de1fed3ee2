/** The parameters of a function of the database, by name, with their types. Within it each begins with `in_`. */
export type FunctionParameters = Readonly<
  Record<string, "TEXT" | "BIGINT" | "BYTEA" | `${string}[]`>
>;

/**
 * How a function that is called by itself runs, whatever the session's settings: it gives up on a lock after 1.5
 * seconds; and its plans, which are kept from the first calls on small tables, follow the indexes from the start. A
 * plan is never made for one call: those for Steps find the partition when they run.
 */
const alone = [
  "lock_timeout = '1500ms'",
  "plan_cache_mode = force_generic_plan",
  ...["seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort"].map((way) => `enable_${way} = off`),
];

/** The statement that makes a function. */
export function createFunction(
  name: string,
  {
    parameters,
    isAlone = false,
    outputs,
    body,
  }: {
    readonly parameters: FunctionParameters;
    /** Whether it is called by itself, and not within a transaction or another function. Default false. */
    readonly isAlone?: boolean;
    /** What it answers: one row of these columns. */
    readonly outputs: FunctionParameters;
    readonly body: string;
  },
): string {
  const list = [
    ...Object.entries(parameters).map(([parameter, type]) => `in_${parameter} ${type}`),
    ...Object.entries(outputs).map(([output, type]) => `OUT ${output} ${type}`),
  ];
  return `CREATE OR REPLACE FUNCTION ${name} (${list.join(", ")})
    LANGUAGE plpgsql ${isAlone ? alone.map((setting) => `SET ${setting} `).join("") : ""}AS $body$
    #variable_conflict use_column
    ${body} $body$`;
}

/** The statement that calls it, each parameter by its name. */
export function callFunction(name: string, parameters: FunctionParameters): string {
  const values = Object.keys(parameters).map((parameter) => `:${parameter}`);
  return `SELECT * FROM ${name}(${values.join(", ")})`;
}

/** An INSERT of columns, each from its parameter or as `instead` says. */
export function insertFrom(
  table: string,
  columns: readonly string[],
  instead: Readonly<Record<string, string>> = {},
): string {
  const values = columns.map((column) => instead[column] ?? `in_${column}`);
  return `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${values.join(", ")})`;
}
