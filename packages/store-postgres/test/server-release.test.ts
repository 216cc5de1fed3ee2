import pg from "pg";
import { afterAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { insertKey, stepIntent } from "../../store-engine/test/step-intents.ts";
import { type PostgresPool, postgresStore } from "../src/index.ts";
import { freshSchema, poolQuerying } from "./databases.ts";

const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 2 });
afterAll(() => pool.end());

/** A pool whose server claims to be another release. */
function poolOf(release: string): PostgresPool {
  return poolQuerying(pool, (query) => ({ text, ...rest }, answered) => {
    const claimed = text.replace("current_setting('server_version_num')", `'${release}'`);
    query({ ...rest, text: claimed }, answered);
  });
}

function openStore(release: string, schema: string, migrate: "auto" | "check" = "auto") {
  const options = { schema, migrate, namedStatements: false };
  const store = postgresStore({ pool: poolOf(release) }, options);
  onTestFinished(() => store.close());
  return store;
}

const refusal = "PostgreSQL store: the server runs PostgreSQL 14; use PostgreSQL 15 or newer";

describe("the release of the server", () => {
  it.each(["auto", "check"] as const)(
    "is rejected by migrate() if it is too old (%s)",
    async (migrate) => {
      const store = openStore("140012", freshSchema(), migrate);
      await expect(store.migrate()).rejects.toThrow(refusal);
    },
  );

  it("is rejected on first use if it is too old, even with a current schema", async () => {
    const schema = freshSchema();
    await openStore("150000", schema).migrate();
    const store = openStore("149999", schema);
    await expect(store.migrate()).rejects.toThrow(refusal);
    await expect(store.openStep(stepIntent("first"))).rejects.toThrow(refusal);
    await expect(store.budgets.version()).rejects.toThrow(refusal);
  });

  it("is accepted from PostgreSQL 15 on", async () => {
    const store = openStore("150000", freshSchema());
    await store.migrate();
    expect(await store.budgets.version()).toBe(0);
  });
});

describe("the encoding of the database", () => {
  /** The address of a new database, which is dropped when the test ends. */
  async function databaseIn(encoding: string): Promise<string> {
    const name = `in_${encoding.toLowerCase()}`;
    const options = `TEMPLATE template0 ENCODING '${encoding}' LOCALE 'C'`;
    onTestFinished(async () => {
      await pool.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    });
    await pool.query(`CREATE DATABASE ${name} ${options}`);
    return new URL(name, inject("postgresUrl")).href;
  }

  function storeIn(url: string) {
    const store = postgresStore({ url });
    onTestFinished(() => store.close());
    return store;
  }

  it("is rejected if it lacks characters that a request may contain", async () => {
    const store = storeIn(await databaseIn("LATIN1"));
    const problem =
      "PostgreSQL store: the database has the encoding LATIN1, which can't store every text; use UTF8";
    await expect(store.migrate()).rejects.toThrow(problem);
    await expect(store.openStep(stepIntent("first"))).rejects.toThrow(problem);
  });

  it.each(["UTF8", "SQL_ASCII"])("is accepted if it is %s", async (encoding) => {
    const store = storeIn(await databaseIn(encoding));
    await store.migrate();
    await insertKey(store);
    const metadata = { name: "名前 ü 😀" };
    await store.openStep({ ...stepIntent("first"), metadata });
    expect(await store.steps.get("acme", "first")).toMatchObject({ metadata });
  });
});
