/** The store in a PostgreSQL database. */
export type {
  PostgresClient,
  PostgresPool,
  PostgresQuery,
  PostgresResult,
} from "./database/client.ts";
export {
  type PostgresSource,
  type PostgresStoreOptions,
  postgresAddressSchema,
  postgresStore,
} from "./postgres-store.ts";
