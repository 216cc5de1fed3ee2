import { readRow } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { restOfSteps } from "../database/postgres-dialect.ts";
import { type PartitionRange, rangeOf } from "./partition-range.ts";

/** The partitions of a schema's Steps. */
export interface Partitions {
  /** The database's clock. Ids follow it if the gateways use it. */
  readonly now: number;
  /** Oldest first. */
  readonly ranges: readonly (PartitionRange & { readonly name: string })[];
  /** The size of the default partition in bytes. */
  readonly restBytes: number;
  /** The constraint that keeps a time range out of the default partition while partitions are created for it. */
  readonly promise: { readonly name: string; readonly isKept: boolean } | null;
}

/** The names of these constraints begin with this prefix. */
export const exclusionPrefix = `${restOfSteps}_without_`;

export async function readPartitions(
  connection: Pick<Connection, "all" | "get">,
  schema: string,
): Promise<Partitions> {
  const parent = `${schema}.steps`;
  const rest = `${schema}.${restOfSteps}`;
  const rows = await connection.all(
    `SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = CAST(:parent AS REGCLASS)`,
    { parent },
  );
  const state = readRow(
    await connection.get(
      `SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now,
          pg_relation_size(CAST(:rest AS REGCLASS)) AS rest_bytes`,
      { rest },
    ),
  );
  const promises = await connection.all(
    `SELECT conname AS name, CAST(convalidated AS INTEGER) AS is_kept FROM pg_constraint
      WHERE conrelid = CAST(:rest AS REGCLASS) AND starts_with(conname, :prefix)`,
    { rest, prefix: exclusionPrefix },
  );
  const [promise] = promises.map(readRow);
  return {
    now: state.integer("now"),
    restBytes: state.integer("rest_bytes"),
    promise: promise
      ? { name: promise.text("name"), isKept: promise.integer("is_kept") === 1 }
      : null,
    ranges: rows
      .map(readRow)
      .flatMap((row) => {
        const range = rangeOf(row.text("bounds"));
        return range ? [{ ...range, name: row.text("name") }] : [];
      })
      .sort((a, b) => a.from - b.from),
  };
}
