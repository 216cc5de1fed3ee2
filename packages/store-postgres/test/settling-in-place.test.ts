import { expect, inject, it } from "vitest";
import { insertKey, stepIntent, stepSettlement } from "../../store-engine/test/step-intents.ts";
import { postgresStore } from "../src/index.ts";
import { freshSchema, withClient } from "./databases.ts";

it("settles most Steps in place, without writing their indexes again", async () => {
  const schema = freshSchema();
  const store = postgresStore({ url: inject("postgresUrl") }, { schema });
  await store.migrate();
  await insertKey(store);
  const count = 60;
  for (let at = 0; at < count; at++) {
    await store.openStep(stepIntent(`step ${at}`));
    await store.settleStep(stepSettlement(`step ${at}`));
  }
  await store.close();
  const inPlace = await withClient(async (client) => {
    for (;;) {
      const { rows } = await client.query(
        `SELECT n_tup_upd AS all, n_tup_hot_upd AS in_place FROM pg_stat_user_tables
         WHERE schemaname = $1 AND relname = 'steps_rest'`,
        [schema],
      );
      // A backend reports its statistics when it ends.
      if (Number(rows[0]?.all) === count) return Number(rows[0]?.in_place);
    }
  });
  expect(inPlace).toBeGreaterThan(count / 2);
});
