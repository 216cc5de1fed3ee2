import pg from "pg";
import { afterAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { stepIntent } from "../../store-engine/test/step-intents.ts";
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
