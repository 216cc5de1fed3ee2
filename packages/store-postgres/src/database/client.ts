/**
 * An open pool of connections, as `pg.Pool` is one. It may serve the application as well: the store leaves nothing
 * behind on a connection but prepared statements whose names begin with `tollgate_`.
 */
export interface PostgresPool {
  /** Called back, so that a connection is heard from the moment it is taken: a promise's news comes a moment later. */
  connect(taken: (error: Error | undefined, client: PostgresClient | undefined) => void): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  off(event: "error", listener: (error: Error) => void): unknown;
}

/** A connection borrowed from a PostgresPool. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<PostgresResult>;
  on(event: "error", listener: (error: Error) => void): unknown;
  off(event: "error", listener: (error: Error) => void): unknown;
  /** Gives it back; `true` closes it instead. */
  release(destroy?: boolean): void;
}

/** One statement as the store sends it. */
export interface PostgresQuery {
  readonly text: string;
  /** Prepared under this name on its connection. */
  readonly name?: string;
  readonly values?: unknown[];
  /** Milliseconds until the client gives up on the answer. */
  readonly query_timeout?: number;
  readonly types?: { getTypeParser(type: number, format?: string): (value: string) => unknown };
}

/** What a statement answered. */
export interface PostgresResult {
  readonly rows: unknown[];
  readonly rowCount: number | null;
}
