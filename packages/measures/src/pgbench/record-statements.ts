import {
  type PostgresClient,
  type PostgresPool,
  type PostgresQuery,
  postgresStore,
} from "@tollgate/store-postgres";

/** A statement as the store sent it. */
export interface Recorded {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** What a store sends on this pool while it does something. */
export async function recordStatements(
  pool: PostgresPool,
  schema: string,
  use: (store: ReturnType<typeof postgresStore>) => Promise<void>,
): Promise<readonly Recorded[]> {
  const recorded: Recorded[] = [];
  const recording: PostgresPool = {
    on: (event, listener) => pool.on(event, listener),
    off: (event, listener) => pool.off(event, listener),
    connect: (taken) =>
      pool.connect((error, client) =>
        taken(
          error,
          client && listening(client, ({ text, values = [] }) => recorded.push({ text, values })),
        ),
      ),
  };
  const store = postgresStore({ pool: recording }, { schema });
  await use(store);
  await store.close();
  return recorded;
}

function listening(client: PostgresClient, hear: (query: PostgresQuery) => void): PostgresClient {
  return {
    query: (query) => {
      hear(query);
      return client.query(query);
    },
    on: (event, listener) => client.on(event, listener),
    off: (event, listener) => client.off(event, listener),
    release: (destroy) => client.release(destroy),
  };
}
