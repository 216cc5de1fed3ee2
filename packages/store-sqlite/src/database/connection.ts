import {
  type CompiledStatement,
  compileStatement,
  orderParameters,
  type SqlParameters,
} from "@tollgate/store-sql";
import type { SqliteClient, SqliteStatement } from "./client.ts";
import { type DatabaseFile, openedFile } from "./database-file.ts";
import { filePathOf, prepareClient } from "./prepare-client.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";

/** A prepared connection; every call runs at once, in whatever transaction is open. */
export interface Connection {
  readonly file: DatabaseFile;
  exec(sql: string): void;
  /** Runs a statement of constant text, prepared once; returns how many rows changed. */
  run(text: string, parameters: SqlParameters): number;
  get(text: string, parameters: SqlParameters): unknown;
  all(text: string, parameters: SqlParameters): unknown[];
  /** As `all`, for a text put together from a filter: it is not kept. */
  query(text: string, parameters: SqlParameters): unknown[];
  close(): void;
}

export function createConnection(client: SqliteClient): Connection {
  prepareClient(client);
  const kept = new Map<string, Prepared>();
  const statement = (text: string): Prepared => {
    const known = kept.get(text);
    if (known) return known;
    const prepared = prepare(client, text);
    kept.set(text, prepared);
    return prepared;
  };
  const all = ({ statement, names }: Prepared, parameters: SqlParameters): unknown[] =>
    statement.all(...orderParameters(names, parameters));

  return {
    file: openedFile(filePathOf(client)),
    exec(sql) {
      client.exec(sql);
    },
    run(text, parameters) {
      const { statement: prepared, names } = statement(text);
      return Number(prepared.run(...orderParameters(names, parameters)).changes);
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

function prepare(client: SqliteClient, text: string): Prepared {
  const compiled = compileStatement(text, sqliteDialect);
  return { ...compiled, statement: client.prepare(compiled.text) };
}
