import { expect, inject, it, onTestFinished } from "vitest";
import {
  hold,
  insertKey,
  owner,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { postgresSchema } from "../src/database/schema.ts";
import { postgresStore } from "../src/index.ts";
import { freshSchema, withClient } from "./databases.ts";

const at = Date.UTC(2026, 0, 5);

function openStore(schema: string) {
  const store = postgresStore({ url: inject("postgresUrl") }, { schema });
  onTestFinished(() => store.close());
  return store;
}

/** A schema of version 1 with all that the tables of that version have of another. */
async function olderSchema(from: string): Promise<string> {
  const schema = freshSchema();
  await withClient(async (client) => {
    await client.query(`CREATE SCHEMA ${schema}; SET search_path TO ${schema}`);
    await client.query((postgresSchema().get(1) ?? []).join(";\n"));
    await client.query(`CREATE TABLE tollgate_schema (version BIGINT NOT NULL);
      INSERT INTO tollgate_schema VALUES (1); DELETE FROM store_state`);
    const { rows } = await client.query(
      `SELECT table_name AS name, string_agg(quote_ident(column_name), ', ') AS columns
        FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
        WHERE table_schema = $1 AND is_generated = 'NEVER' AND table_name <> 'tollgate_schema'
        GROUP BY table_name`,
      [schema],
    );
    for (const { name, columns } of rows)
      await client.query(
        `INSERT INTO ${schema}.${name} (${columns}) SELECT ${columns} FROM ${from}.${name}`,
      );
    await client.query(`SELECT setval('${schema}.sequence', 1000)`);
  });
  return schema;
}

it("brings a database of version 1 along with its Steps, without moving them", async () => {
  const present = freshSchema();
  const first = openStore(present);
  await first.migrate();
  await insertKey(first);
  for (const id of ["one", "two", "open"]) await first.openStep(stepIntent(id, [hold(1_000_000)]));
  for (const id of ["one", "two"]) await first.settleStep(stepSettlement(id));

  const schema = await olderSchema(present);
  const file = `SELECT relfilenode AS file FROM pg_class WHERE oid = '${schema}`;
  const fileOf = (table: string) =>
    withClient((client) => client.query(`${file}.${table}'::regclass`));
  const before = (await fileOf("steps")).rows;
  const store = openStore(schema);
  await Promise.all([store.migrate(), openStore(schema).migrate()]);
  expect((await fileOf("steps_rest")).rows).toEqual(before);
  const indexes = `SELECT count(*) - count(DISTINCT regexp_replace(indexdef, 'INDEX \\S+', '')) AS twice,
    count(*) > 5 AS all FROM pg_indexes WHERE schemaname = '${schema}' AND tablename = 'steps_rest'`;
  const found = await withClient((client) => client.query(indexes));
  expect(found.rows).toEqual([{ twice: "0", all: true }]);

  const page = { cursor: null, limit: 10 };
  const list = async () => (await store.steps.list({ organizationId: "acme" }, page)).data;
  expect(await list()).toEqual((await first.steps.list({ organizationId: "acme" }, page)).data);
  expect(await store.settleStep(stepSettlement("open"))).toMatchObject({ settled: true });
  expect(await store.openStep(stepIntent("three"))).toMatchObject({ opened: true });
  const swept = await store.steps.sweep({
    at: at + 86_400_000,
    keep: 1,
    limit: 100,
    leaf: ({ count }) => ({ ...stepSettlement("three").leaf, id: `${count} removed` }),
  });
  expect(swept).toEqual({ removed: 3, more: false });
  expect((await list()).map(({ id }) => id)).toEqual(["three"]);
  const key = await store.keys.get(owner.organizationId, owner.keyId);
  expect(key).toMatchObject({ id: "key", version: 0 });
  if (!key) expect.fail("the key is gone");
  const entry = { key: { ...key, id: "ensured", prefix: "" }, salt: new Uint8Array(32) };
  const leaf = { ...stepSettlement("three").leaf, id: "ensured" };
  const ensured = await Promise.all([1, 2].map(() => store.keys.ensure({ ...entry, leaf })));
  expect(ensured.map((found) => found.key.id)).toEqual(["ensured", "ensured"]);
});
