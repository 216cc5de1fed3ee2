import { schemaSteps } from "@tollgate/store-sql";
import { postgresDialect } from "./postgres-dialect.ts";

/** Where Steps stand whose id is of no partition's time: all of them until activity is kept for a limited time. */
export const restOfSteps = "steps_rest";

/** What PostgreSQL has beside the tables, by the version that brings it. */
const beside: ReadonlyMap<number, readonly string[]> = new Map([
  // Numbers come from here and not from a row, which every change would have to lock.
  [1, ["CREATE SEQUENCE sequence", primaryKeysLast()]],
  [2, [stepsInPartitions()]],
]);

/** The statements that lead from each version to the next, by the version they lead to; forward only. */
export function postgresSchema(): ReadonlyMap<number, readonly string[]> {
  return new Map(
    [...schemaSteps(postgresDialect)].map(([version, statements]) => [
      version,
      [...statements, ...(beside.get(version) ?? [])],
    ]),
  );
}

/**
 * Makes every primary key anew, after the other indexes. On an empty table all indexes that begin with the organization
 * cost the same, the planner takes the youngest, and a plan made then is kept while the table grows.
 */
function primaryKeysLast(): string {
  return `DO $body$
    DECLARE
      one RECORD;
    BEGIN
      FOR one IN SELECT conrelid::regclass AS relation, conname, pg_get_constraintdef(oid) AS definition
        FROM pg_constraint WHERE contype = 'p' AND connamespace = current_schema()::regnamespace
      LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.relation, one.conname);
        EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I %s', one.relation, one.conname, one.definition);
      END LOOP;
    END $body$`;
}

/**
 * Makes `steps` a table in partitions by id, and the table there was its first: nothing is read or copied. Ids of UUID
 * version 7 sort by their time, so that a partition is a stretch of time, and who has an id needs no other partition.
 * The primary key comes last again.
 */
function stepsInPartitions(): string {
  return `DO $body$
    DECLARE
      one RECORD;
      definitions TEXT[] := ARRAY(SELECT pg_get_indexdef(indexrelid) FROM pg_index
        WHERE indrelid = 'steps'::regclass AND NOT indisprimary ORDER BY indexrelid);
      definition TEXT;
    BEGIN
      FOR one IN SELECT c.relname AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = 'steps'::regclass
      LOOP
        EXECUTE format('ALTER INDEX %I RENAME TO %I', one.name,
          replace(one.name, 'steps_', '${restOfSteps}_'));
      END LOOP;
      ALTER TABLE steps RENAME TO ${restOfSteps};
      CREATE TABLE steps (LIKE ${restOfSteps} INCLUDING GENERATED) PARTITION BY RANGE (id);
      FOREACH definition IN ARRAY definitions LOOP
        EXECUTE definition;
      END LOOP;
      ALTER TABLE steps ADD PRIMARY KEY (organization_id, id);
      ALTER TABLE steps ATTACH PARTITION ${restOfSteps} DEFAULT;
    END $body$`;
}
