import pg from "pg";
import { afterAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { stepIntent } from "../../store-engine/test/step-intents.ts";
import { postgresStore } from "../src/index.ts";
import { freshSchema } from "./databases.ts";

const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 2 });
afterAll(() => pool.end());

type Pool = Extract<Parameters<typeof postgresStore>[0], { readonly pool: unknown }>["pool"];

/** A pool whose server claims to be another release; everything else is unchanged. */
function poolOf(release: string): Pool {
  return {
    on: (event, listener) => pool.on(event, listener),
    off: (event, listener) => pool.off(event, listener),
    connect: (taken) =>
      pool.connect((error, client) => {
        if (!client) return taken(error, undefined);
        taken(error, {
          on: (event, listener) => client.on(event, listener),
          off: (event, listener) => client.off(event, listener),
          release: (destroy) => client.release(destroy),
          query: ({ text, ...query }, answered) =>
            client.query(
              {
                ...query,
                text: text.replace("current_setting('server_version_num')", `'${release}'`),
              },
              answered,
            ),
        });
      }),
  };
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
