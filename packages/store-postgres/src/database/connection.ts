import { createHash } from "node:crypto";
import { compileStatement, orderParameters, type SqlParameters } from "@tollgate/store-sql";
import type { AcquiredClient } from "./acquire.ts";
import type { PostgresQuery, PostgresResult } from "./client.ts";
import { isOfName, queryFailure } from "./failure.ts";
import { postgresDialect } from "./postgres-dialect.ts";
import { attempt, mapped, promised, type Receiver, type Task } from "./task.ts";
import { columnTypes, toParameter } from "./values.ts";

/** How long an answer may take, in milliseconds. */
export const queryTimeouts = {
  statement: 2_000,
  list: 15_000,
  ledger: 120_000,
  migration: 120_000,
} as const;

/** A borrowed connection; every call runs in the open transaction, if there is one. */
export interface Connection {
  /** Runs a statement of constant text; returns how many rows changed. */
  run(text: string, parameters: SqlParameters): Promise<number>;
  get(text: string, parameters: SqlParameters): Promise<unknown>;
  all(text: string, parameters: SqlParameters): Promise<readonly unknown[]>;
  /** Like `all`, as a task. */
  rows(text: string, parameters: SqlParameters): Task<readonly unknown[]>;
  /** Like `all`, for a text that takes the parameters with these names from several objects, one after the other. */
  each(
    text: string,
    names: readonly string[],
    parameters: readonly SqlParameters[],
  ): Promise<readonly unknown[]>;
  /** Like `all`, for a text built from a filter, or one that reads many rows: not prepared, and may take longer. */
  query(text: string, parameters: SqlParameters, longest?: number): Promise<readonly unknown[]>;
  /**
   * Runs statements without parameters in one round trip. If only `COMMIT` fails, it is unknown whether it happened.
   */
  exec(sql: string, longest?: number): Promise<void>;
}

/** The statements as this store sends them: in its schema, prepared or not. */
export interface Statements {
  get(text: string): Statement;
  /**
   * Sends them without names for a while. The prepared statements of one connection were dropped, so those of others may
   * be gone, too. A call must not fail on one connection after another.
   */
  avoidNames(): void;
}

interface Statement {
  readonly query: Pick<PostgresQuery, "text" | "name">;
  readonly names: readonly string[];
}

/** How long statements then have no names: much longer than a call waits before it is repeated. Milliseconds. */
const namelessFor = 10_000;

/** Statement texts are constants, so this cache is bounded. */
export function createStatements(options: {
  readonly qualify: (text: string) => string;
  readonly namedStatements: boolean;
}): Statements {
  const kept = new Map<string, { readonly named: Statement; readonly nameless: Statement }>();
  let namelessUntil = options.namedStatements ? 0 : Number.POSITIVE_INFINITY;
  const compile = (original: string) => {
    const { text, names } = compileStatement(options.qualify(original), postgresDialect);
    const name = `tollgate_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
    const statement = {
      named: { query: { text, name }, names },
      nameless: { query: { text }, names },
    };
    kept.set(original, statement);
    return statement;
  };
  return {
    get(text) {
      const { named, nameless } = kept.get(text) ?? compile(text);
      return performance.now() < namelessUntil ? nameless : named;
    },
    avoidNames() {
      namelessUntil = Math.max(namelessUntil, performance.now() + namelessFor);
    },
  };
}

export function createConnection(
  { client, discard: lose }: AcquiredClient,
  {
    statements,
    qualify,
    commits,
  }: {
    readonly statements: Statements;
    readonly qualify: (text: string) => string;
    /** Whether each statement commits by itself. */
    readonly commits: boolean;
  },
): Connection {
  const send =
    (query: PostgresQuery, mayCommit: boolean): Task<PostgresResult> =>
    (receiver) => {
      // The callback may outlive the answer for a while, and must not keep all that waited for it.
      let waiting: Receiver<PostgresResult> | null = receiver;
      const answered = (error: unknown, result?: PostgresResult): void => {
        const told = waiting;
        waiting = null;
        if (!told) return;
        if (result && !error) attempt(({ resolve }) => resolve(result), told);
        else {
          const failure = queryFailure(error, mayCommit);
          if (failure.kind.isLost) lose();
          if (isOfName(failure)) statements.avoidNames();
          told.reject(failure);
        }
      };
      const sent = { query_timeout: queryTimeouts.statement, ...query, types: columnTypes };
      try {
        const returned = client.query(sent, answered);
        if (isPromise(returned))
          returned.then((result) => {
            // A wrapper that passes the callback on may resolve before the answer, to nothing.
            if (result) answered(null, result);
          }, answered);
      } catch (error) {
        answered(error);
      }
    };
  const prepared =
    (text: string, parameters: SqlParameters): Task<PostgresResult> =>
    (receiver) => {
      const { query, names } = statements.get(text);
      send({ ...query, values: valuesOf(names, parameters) }, commits)(receiver);
    };
  const rows: Connection["rows"] = (text, parameters) => mapped(prepared(text, parameters), rowsOf);
  return {
    run: async (text, parameters) => (await promised(prepared(text, parameters))).rowCount ?? 0,
    get: async (text, parameters) => (await promised(rows(text, parameters)))[0],
    all: (text, parameters) => promised(rows(text, parameters)),
    rows,
    async each(text, names, parameters) {
      const values = parameters.flatMap((one) => valuesOf(names, one));
      return promised(mapped(send({ ...statements.get(text).query, values }, commits), rowsOf));
    },
    async query(text, parameters, longest = queryTimeouts.list) {
      const compiled = compileStatement(qualify(text), postgresDialect);
      const values = valuesOf(compiled.names, parameters);
      const query = { text: compiled.text, values, query_timeout: longest };
      return promised(mapped(send(query, commits), rowsOf));
    },
    async exec(sql, longest = queryTimeouts.statement) {
      await promised(send({ text: sql, query_timeout: longest }, sql === "COMMIT"));
    },
  };
}

function isPromise(returned: unknown): returned is PromiseLike<PostgresResult | undefined> {
  return returned instanceof Object && "then" in returned && typeof returned.then === "function";
}

function rowsOf({ rows }: PostgresResult): readonly unknown[] {
  return rows;
}

function valuesOf(names: readonly string[], parameters: SqlParameters): unknown[] {
  return orderParameters(names, parameters).map(toParameter);
}
