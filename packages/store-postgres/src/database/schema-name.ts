import { postgresSchema, restOfSteps } from "./postgres-dialect.ts";

/** Whether a schema name needs no quotes. */
export function isSchemaName(schema: string): boolean {
  return /^[a-z_][a-z0-9_]{0,47}$/.test(schema) && !schema.startsWith("pg_");
}

/**
 * Adds the schema to the name of every table and view in a statement. Setting `search_path` would be shorter, but it belongs to
 * the server session, which a transaction pooler shares with other clients.
 */
export function createQualify(schema: string): (text: string) => string {
  const statements = [...postgresSchema().values()].flat();
  const tables = statements.flatMap(
    (statement) => /^CREATE (?:TABLE|VIEW) (\w+)/.exec(statement)?.[1] ?? [],
  );
  const named = new Set([...tables, restOfSteps]);
  return (text) =>
    text.replace(/\b(FROM|JOIN|INTO|UPDATE)(\s+)(\w+)/g, (whole, before, space, name) =>
      named.has(name) ? `${before}${space}${schema}.${name}` : whole,
    );
}
