import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, inject, it, onTestFinished } from "vitest";
import {
  insertKey,
  leafOf,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { postgresStore } from "../src/index.ts";
import { freshSchema, migrated, withClient } from "./databases.ts";

const guide = new URL("../../../docs/guides/production.md", import.meta.url);

/** The address of the server for a new database user with the rights that the production guide grants. */
async function addressOfUser(schema: string): Promise<string> {
  const [grants = ""] = /^GRANT USAGE ON SCHEMA[^`]*/m.exec(readFileSync(guide, "utf8")) ?? [];
  const user = `user_${randomBytes(8).toString("hex")}`;
  const granted = grants
    .replaceAll("SCHEMA tollgate", `SCHEMA ${schema}`)
    .replaceAll("TO gateway", `TO ${user}`);
  await withClient((client) => client.query(`CREATE ROLE ${user} LOGIN; ${granted}`));
  onTestFinished(() =>
    withClient(async (client) => {
      await client.query(`DROP OWNED BY ${user}; DROP ROLE ${user}`);
    }),
  );
  const address = new URL(inject("postgresUrl"));
  address.username = user;
  return address.href;
}

it("works with the rights that the production guide grants to a gateway", async () => {
  const schema = freshSchema();
  await migrated(schema);
  const url = await addressOfUser(schema);
  const store = postgresStore({ url }, { schema, migrate: "check" });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  await store.openStep(stepIntent("first"));
  await store.settleStep(stepSettlement("first"));
  const { places } = await store.checkpoints.next({ organizationId: "acme", limit: 100 });
  expect(places).toHaveLength(3);
  const sweep = { from: "", at: Number.MAX_SAFE_INTEGER, keep: 0, limit: 100, unfolded: new Map() };
  const leaf = () => leafOf("activity.removed", "removed");
  expect(await store.steps.sweep({ ...sweep, leaf })).toEqual({ removed: 1, next: null });
});
