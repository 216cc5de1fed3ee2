import { postgresSchema, restOfSteps } from "./schema.ts";

/** Whether a schema's name needs no quotes. */
export function isSchemaName(schema: string): boolean {
  return /^[a-z_][a-z0-9_]{0,47}$/.test(schema) && !schema.startsWith("pg_");
}

/**
 * Names the schema of every table in a statement. The setting that would spare it, `search_path`, belongs to the
 * session, and behind a transaction pooler that is somebody else's.
 */
export function createQualify(schema: string): (text: string) => string {
  const statements = [...postgresSchema().values()].flat();
  const tables = statements.flatMap(
    (statement) => /^CREATE TABLE (\w+)/.exec(statement)?.[1] ?? [],
  );
  const named = new Set([...tables, restOfSteps]);
  return (text) =>
    text.replace(/\b(FROM|JOIN|INTO|UPDATE)(\s+)(\w+)/g, (whole, before, space, name) =>
      named.has(name) ? `${before}${space}${schema}.${name}` : whole,
    );
}
