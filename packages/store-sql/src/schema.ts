import type { SqlDialect } from "./dialect.ts";
import { type ColumnType, type Table, type TableName, tables, typedColumn } from "./tables.ts";

/** The version of the schema below; a database with a higher one belongs to a newer release. */
export const schemaVersion = 1;

/**
 * A failure that `migrate()` fixes. Its `needsMigration` is the same message without that remedy, for the command line, which
 * has others.
 */
export function needingMigration(fail: (problem: string) => Error, problem: string): Error {
  const { message: needsMigration } = fail(problem);
  return Object.assign(fail(`${problem}; call migrate() first`), { needsMigration });
}

/** The statements that lead from each version to the next, keyed by the version they lead to; forward only. */
export function schemaSteps(dialect: SqlDialect): ReadonlyMap<number, readonly string[]> {
  const named = Object.entries(tables) as [TableName, Table][];
  const first = [
    ...named.flatMap(([name, table]) => createTable(name, table, dialect)),
    `INSERT INTO store_state (id, budgets_version, cursor_secret) VALUES (1, 0, ${dialect.secret})`,
    `CREATE VIEW log_leaves AS SELECT s.organization_id AS organization_id, s.number AS number, l.id AS id,
      l.kind AS kind, l.at AS at, l.meta AS meta, l.hash AS hash
      FROM sealed_leaves s LEFT JOIN leaves l
      ON l.organization_id = s.organization_id AND l.sequence = s.sequence`,
    ...dialect.additions,
  ];
  return new Map([[1, first]]);
}

/** The statements that create a table and its indexes. */
function createTable(
  table: TableName,
  { columns, key, kind = "keyedTable", indexes = {}, uniqueIndexes = {} }: Table,
  dialect: SqlDialect,
): readonly string[] {
  const differences = dialect.tables[table];
  if (differences === null) return [];
  const { name = table, columns: further, key: ownKey = key } = differences ?? {};
  const all = further === undefined ? columns : `${columns}, ${further}`;
  const definitions = all.replace(
    typedColumn,
    (_, column: string, type: ColumnType, isNullable: string) =>
      `${column} ${dialect[type]}${isNullable ? "" : " NOT NULL"}`,
  );
  return [
    `CREATE TABLE ${name} (${definitions}, PRIMARY KEY (${ownKey}))${dialect[kind]}`,
    ...Object.entries(indexes).map(([index, on]) => `CREATE INDEX ${index} ON ${name} ${on}`),
    ...Object.entries(uniqueIndexes).map(
      ([index, on]) => `CREATE UNIQUE INDEX ${index} ON ${name} ${on}`,
    ),
  ];
}
