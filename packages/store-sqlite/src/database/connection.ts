import {
  addParameters,
  type CompiledStatement,
  compileStatement,
  orderParameters,
  type SqlParameters,
  type SqlValue,
} from "@tollgate/store-sql";
import type { SqliteClient, SqliteStatement } from "./client.ts";
import { type DatabaseFile, watchFile } from "./database-file.ts";
import { filePathOf, prepareClient } from "./prepare-client.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";

/** A prepared connection; every call runs at once, in whatever transaction is open. */
export interface SqliteConnection {
  readonly file: DatabaseFile;
  exec(sql: string): void;
  /** Runs a statement of constant text, prepared once; returns how many rows changed. */
  run(text: string, parameters: SqlParameters): number;
  /** Runs an INSERT of one row for each of these rows, several at once. */
  insertRows(text: string, rows: readonly SqlParameters[]): void;
  get(text: string, parameters: SqlParameters): unknown;
  all(text: string, parameters: SqlParameters): unknown[];
  /** As `all`, for a text put together from a filter: it is not kept. */
  query(text: string, parameters: SqlParameters): unknown[];
  close(): void;
}

/** How many rows an INSERT has, each tried for what the one before left. */
const insertSizes = [16, 4, 2, 1] as const;

export function createConnection(client: SqliteClient): SqliteConnection {
  prepareClient(client);
  const statement = createStatementCache(client);
  const multiRowInserts = insertSizes.map((count) => ({
    count,
    insert: createStatementCache(client, (text) => withRows(text, count)),
  }));
  const all = ({ statement, names }: Prepared, parameters: SqlParameters): unknown[] =>
    statement.all(...orderParameters(names, parameters));

  return {
    file: watchFile(filePathOf(client)),
    exec(sql) {
      client.exec(sql);
    },
    run(text, parameters) {
      const { statement: prepared, names } = statement(text);
      return Number(prepared.run(...orderParameters(names, parameters)).changes);
    },
    insertRows(text, rows) {
      const { names } = statement(text);
      let next = 0;
      for (const { count, insert } of multiRowInserts)
        while (rows.length - next >= count) {
          const values: SqlValue[] = [];
          for (const end = next + count; next < end; next++)
            addParameters(values, names, rows[next] ?? {});
          insert(text).statement.run(...values);
        }
    },
    get(text, parameters) {
      const { statement: prepared, names } = statement(text);
      return prepared.get(...orderParameters(names, parameters));
    },
    all: (text, parameters) => all(statement(text), parameters),
    query: (text, parameters) => all(prepare(client, text), parameters),
    close() {
      client.close();
    },
  };
}

interface Prepared extends CompiledStatement {
  readonly statement: SqliteStatement;
}

/** Statements by their texts, each prepared when it is first asked for. */
function createStatementCache(
  client: SqliteClient,
  change = (text: string): string => text,
): (text: string) => Prepared {
  const cache = new Map<string, Prepared>();
  return (text) => {
    const known = cache.get(text);
    if (known) return known;
    const prepared = prepare(client, change(text));
    cache.set(text, prepared);
    return prepared;
  };
}

/** An INSERT of one row as one of several. */
function withRows(text: string, count: number): string {
  return text.replace(/VALUES (\([^)]*\))/, (_, row: string) => {
    return `VALUES ${Array.from({ length: count }, () => row).join(", ")}`;
  });
}

function prepare(client: SqliteClient, text: string): Prepared {
  const compiled = compileStatement(text, sqliteDialect);
  return { ...compiled, statement: client.prepare(compiled.text) };
}
