/** The parameters of a function of the database, by name, with their types. Within it each begins with `in_`. */
export type FunctionParameters = Readonly<
  Record<string, "TEXT" | "BIGINT" | "BYTEA" | `${string}[]`>
>;

/**
/**
 * How a function runs, whatever the session's settings: its plans, which are kept from the first calls on small tables,
 * follow the indexes from the start. A plan is never made for one call: those for Steps find the partition when they run.
 */
export const byIndexes: readonly string[] = [
  "plan_cache_mode = force_generic_plan",
  ...["seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort"].map((way) => `enable_${way} = off`),
];

/** The statement that makes a function. */
export function createFunction(
  name: string,
  {
    parameters,
    settings = [],
    outputs,
    body,
  }: {
    readonly parameters: FunctionParameters;
    /** What it sets while it runs. Default nothing. */
    readonly settings?: readonly string[];
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
    LANGUAGE plpgsql ${settings.map((setting) => `SET ${setting} `).join("")}AS $body$
    #variable_conflict use_column
    ${body} $body$`;
}

/** The statement that calls it, each parameter by its name. */
export function callFunction(name: string, parameters: FunctionParameters): string {
  const values = Object.keys(parameters).map((parameter) => `:${parameter}`);
  return `SELECT * FROM ${name}(${values.join(", ")})`;
}

/** For a FROM: `count` rows `v` of such parameters, each with its `place`; all are sent one after the other. */
export function rowsOf(parameters: FunctionParameters, count: number): string {
  const columns = Object.entries(parameters);
  const row = (place: number): string => {
    const first = place * columns.length + 1;
    const values = columns.map(([, type], at) => `CAST($${first + at} AS ${type})`);
    return `(${[place, ...values].join(", ")})`;
  };
  const names = ["place", ...Object.keys(parameters)].join(", ");
  return `(VALUES ${Array.from({ length: count }, (_, place) => row(place)).join(", ")}) AS v (${names})`;
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
