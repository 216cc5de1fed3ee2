import { schemaSteps } from "@tollgate/store-sql";
import { postgresDialect } from "./postgres-dialect.ts";

/** What PostgreSQL has beside the tables, by the version that brings it. */
const beside: ReadonlyMap<number, readonly string[]> = new Map([
  // Numbers come from here and not from a row, which every change would have to lock.
  [1, ["CREATE SEQUENCE sequence"]],
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
