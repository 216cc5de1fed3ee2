import { countingIds, createTestGateway } from "@tollgate/testing";
import { expect, inject, it, onTestFinished } from "vitest";
import { postgresStore } from "../src/index.ts";
import { freshSchema, withClient } from "./databases.ts";

const budgets = [
  { id: "day", limit: { tokens: 100_000 }, period: "day" },
  { id: "each", scope: { each: "key" }, limit: { requests: 5 }, period: "day" },
] as const;

async function openGateway(schema: string, series = 0) {
  const store = postgresStore({ url: inject("postgresUrl") }, { schema });
  const test = await createTestGateway({ store, budgets, ids: countingIds(series) });
  onTestFinished(() => test.gateway.close());
  return test;
}

it("reports exactly the counters that something outside the store changed", async () => {
  const schema = freshSchema();
  const { gateway, chat, key } = await openGateway(schema);
  await gateway.fetch(chat());
  expect(await gateway.budgets.reconcile()).toEqual({ counters: 2, drift: [] });
  const run = (sql: string) => withClient((client) => client.query(sql));
  await run(
    `UPDATE ${schema}.budget_counters SET settled = settled + 1, held = 7 WHERE budget_id = 'each'`,
  );
  const periodStart = "2026-01-01T00:00:00.000Z";
  const damaged = { budgetId: "each", subject: key.id, unit: "requests", periodStart };
  const lost = { budgetId: "day", subject: "", unit: "tokens", periodStart };
  expect((await gateway.budgets.reconcile()).drift).toEqual([
    { ...damaged, settled: 2, held: 7, ledger: { settled: 1, held: 0 } },
  ]);
  await run(`DELETE FROM ${schema}.budget_counters WHERE budget_id = 'day'`);
  expect(await gateway.budgets.reconcile()).toMatchObject({
    counters: 1,
    drift: [{ ...lost, settled: 0, held: 0, ledger: { settled: 15, held: 0 } }, damaged],
  });
});

it("accepts exactly as many concurrent first requests of each key as its counter allows", async () => {
  const schema = freshSchema();
  const here = await openGateway(schema);
  const there = await openGateway(schema, 1);
  const keys = await Promise.all([1, 2, 3].map((at) => here.createKey({ label: `key ${at}` })));
  const answers = await Promise.all(
    keys.flatMap(({ chat }) =>
      Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? here : there).gateway.fetch(chat())),
    ),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(15);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(21);
  const { data } = await here.gateway.budgets.status({ id: "each" });
  expect(data.map(({ subject, settled, held }) => [subject, settled, held]).sort()).toEqual(
    keys.map(({ key }) => [key.id, 5, 0]).sort(),
  );
  expect((await there.gateway.budgets.reconcile()).drift).toEqual([]);
});
