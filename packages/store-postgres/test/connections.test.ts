import { createTestGateway, scriptedProvider } from "@tollgate/testing";
import { expect, inject, it, onTestFinished } from "vitest";
import { postgresStore } from "../src/index.ts";
import { freshSchema, withClient } from "./databases.ts";

const acme = { organizationId: "organization-1", gateway: "own" };
const globex = { organizationId: "globex", gateway: "own" };

/** A gateway on its own schema, with the credentials of two organizations. */
async function openGateway() {
  const schema = freshSchema();
  const upstream = scriptedProvider();
  const test = await createTestGateway({
    store: postgresStore({ url: inject("postgresUrl") }, { schema }),
    providers: { own: { ...upstream.at("own"), connection: "customer" } },
    retries: { max: 0 },
  });
  onTestFinished(() => test.gateway.close());
  const other = await test.createKey({ organizationId: "globex" });
  await test.gateway.connections.set({ ...acme, apiKey: "sk-acme" });
  await test.gateway.connections.set({ ...globex, apiKey: "sk-globex" });
  const statuses = async () => {
    const model = "own/a/b";
    const answers = [test.chat({ model }), other.chat({ model })].map((request) =>
      test.gateway.fetch(request),
    );
    return (await Promise.all(answers)).map(({ status }) => status);
  };
  const credentials = () => upstream.calls.map(({ credential }) => credential).toSorted();
  return { ...test, schema, statuses, credentials };
}

it("gives each organization its own credential", async () => {
  const { statuses, credentials } = await openGateway();
  expect(await statuses()).toEqual([200, 200]);
  expect(credentials()).toEqual(["sk-acme", "sk-globex"]);
});

it.each([
  [
    "whole rows",
    "id = t.id, key_id = t.key_id, wrapped_key = t.wrapped_key, credential = t.credential",
  ],
  ["ciphertexts", "credential = t.credential"],
  ["data keys", "wrapped_key = t.wrapped_key"],
])("opens no credential if %s were swapped between organizations (S36)", async (_name, columns) => {
  const { schema, statuses, credentials } = await openGateway();
  const { rowCount } = await withClient((client) =>
    client.query(
      `UPDATE ${schema}.connections c SET ${columns} FROM ${schema}.connections t
       WHERE t.gateway = c.gateway AND t.organization_id <> c.organization_id`,
    ),
  );
  expect(rowCount).toBe(2);
  expect(await statuses()).toEqual([503, 503]);
  expect(credentials()).toEqual([]);
});

it("stores no credential in plain text", async () => {
  const { schema } = await openGateway();
  const { rows } = await withClient((client) =>
    client.query(`SELECT table_name FROM information_schema.tables WHERE table_schema = $1`, [
      schema,
    ]),
  );
  const tables = rows.map(({ table_name }) => String(table_name));
  expect(tables).toContain("connections");
  for (const table of tables) {
    const found = await withClient((client) =>
      client.query(`SELECT convert_to(t::text, 'UTF8') AS row FROM ${schema}.${table} t`),
    );
    const text = found.rows.map(({ row }) => Buffer.from(row).toString()).join("\n");
    for (const secret of ["sk-acme", "sk-globex"])
      for (const form of [secret, Buffer.from(secret).toString("hex")])
        expect(text.includes(form), `${form} in ${table}`).toBe(false);
  }
});
