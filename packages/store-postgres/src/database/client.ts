/**
 * An open pool of connections, such as `pg.Pool`. The application may use it as well: the store leaves nothing on a
 * connection except prepared statements whose names begin with `tollgate_`.
 */
export interface PostgresPool {
  /**
   * Uses a callback so that the store can listen from the moment it takes the connection: a promise resolves a moment
   * later.
   */
  connect(taken: (error: Error | undefined, client: PostgresClient | undefined) => void): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  off(event: "error", listener: (error: Error) => void): unknown;
}

/** A connection borrowed from a PostgresPool. */
export interface PostgresClient {
  /**
   * Uses a callback as well, so that a statement creates no promises. A library that wraps the client may return a promise
   * of the result instead; the first answer counts.
   */
  query(
    query: PostgresQuery,
    answered: (error: Error | null | undefined, result: PostgresResult | undefined) => void,
  ): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  off(event: "error", listener: (error: Error) => void): unknown;
  /** Returns it to the pool; `true` closes it instead. */
  release(destroy?: boolean): void;
}

/** One statement as the store sends it. */
export interface PostgresQuery {
  readonly text: string;
  /** The name of the prepared statement on its connection. */
  readonly name?: string;
  readonly values?: unknown[];
  /** Milliseconds until the client stops waiting for the answer. */
  readonly query_timeout?: number;
  readonly types?: { getTypeParser(type: number, format?: string): (value: string) => unknown };
}

/** The answer to a statement. */
export interface PostgresResult {
  readonly rows: unknown[];
  readonly rowCount: number | null;
}
