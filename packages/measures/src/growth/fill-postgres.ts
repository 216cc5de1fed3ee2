import { postgresStore } from "@tollgate/store-postgres";
import pg from "pg";
import { fillingStatements, idOf, lastSequence, type Size, type Words } from "./history.ts";

/** Into how many partitions the Steps fall, as where activity is kept for a limited time. */
const parts = 10;

const words: Words = {
  series: (count) => `generate_series(0::BIGINT, ${count - 1}) AS series (n)`,
  digest: (number) => `convert_to(lpad((${number})::TEXT, 32, '0'), 'UTF8')`,
  carriesPermits: false,
  bytes: (text) => `convert_to(${text}, 'UTF8')`,
};

/** Makes a schema with a history of this size, and the statistics that the server would make by itself in time. */
export async function fillPostgres(place: {
  readonly url: string;
  readonly schema: string;
  readonly size: Size;
}): Promise<void> {
  const { url, schema, size } = place;
  const store = postgresStore({ url }, { schema });
  await store.migrate();
  await store.close();
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`SET search_path TO ${schema}; SET synchronous_commit = off`);
  for (let part = 0; part < parts; part++) await client.query(partition(size, part));
  for (const statement of fillingStatements(size, words)) await client.query(statement);
  await client.query(`SELECT setval('sequence', ${lastSequence(size)})`);
  await client.query("VACUUM ANALYZE");
  await client.end();
}

function partition({ steps }: Size, part: number): string {
  const bound = (place: number): string =>
    `('${idOf("step", Math.floor((steps * place) / parts))}')`;
  return `CREATE TABLE steps_part_${part} PARTITION OF steps
    FOR VALUES FROM ${bound(part)} TO ${bound(part + 1)}`;
}
