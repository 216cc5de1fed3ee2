/** This gateway with nothing switched off: keys, policy, prices, two hard budgets, transcripts, evidence. */
import { createGateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import type { Store } from "@tollgate/core/store";
import { serve } from "@tollgate/node";
import { openaiCompatible } from "@tollgate/provider-openai";
import { models } from "../scenarios.ts";
import type { TargetOrder } from "../targets.ts";

const database = process.env["BENCH_DATABASE"] ?? "";

const price = { input: "0.25", output: "2", cachedInput: "0.025", maxOutputTokens: 16_000 };

const gateway = createGateway({
  store: await openStore(),
  providers: {
    bench: openaiCompatible({
      baseURL: process.env["BENCH_UPSTREAM"] ?? "",
      apiKey: "bench",
      models: Object.fromEntries(models.map((model) => [`openai/${model}`, price])),
    }),
  },
  policy: definePolicy({
    rules: [
      permit("bench", { gateway: "bench", upTo: "D2_CONFIDENTIAL" }),
      forbid("no-previews", { model: "*/*/*-preview" }),
    ],
  }),
  budgets: [
    { id: "key-day", scope: { each: "key" }, limit: { usd: 5_000 }, period: "day", mode: "hard" },
    {
      id: "acme-month",
      scope: { organization: "acme" },
      limit: { usd: 90_000 },
      period: "month",
      mode: "hard",
    },
  ],
});
const owner = { organizationId: "acme", userId: "ada" };
const { secret } = await gateway.keys.create({ ...owner, label: "bench" });
const server = await serve(gateway, { port: 0 });

let stopObserving = (): void => {};
const events: Record<string, number> = {};

process.on("message", async (order: TargetOrder) => {
  stopObserving();
  if (order.order === "records") return void process.send?.(await countActivity());
  if (order.observed)
    stopObserving = gateway.observe(({ type }) => {
      events[type] = (events[type] ?? 0) + 1;
    });
  process.send?.(await createKeys(order.keys));
});
process.on("disconnect", async () => {
  await server.close();
  await gateway.close();
  process.exit(0);
});
process.send?.({ origin: server.url, headers: { authorization: `Bearer ${secret}` } });

async function openStore(): Promise<Store> {
  const kind = process.argv[2];
  if (kind === "memory") return (await import("@tollgate/store-memory")).memoryStore();
  if (kind === "postgres") {
    const { postgresStore } = await import("@tollgate/store-postgres");
    return postgresStore({ url: database }, { schema: process.env["BENCH_SCHEMA"] ?? "" });
  }
  const { sqliteStore } = await import("@tollgate/store-sqlite");
  return sqliteStore({ filename: database });
}

/** Creates keys of the same user and returns their secrets. */
async function createKeys(count: number): Promise<readonly string[]> {
  const secrets: string[] = [];
  while (secrets.length < count) {
    const label = `bench ${secrets.length}`;
    secrets.push((await gateway.keys.create({ ...owner, label })).secret);
  }
  return secrets;
}

/** The number of activity records: one for each completed call. */
async function countActivity(): Promise<number> {
  let count = 0;
  for await (const _ of gateway.activity.list({ organizationId: owner.organizationId })) count += 1;
  return count;
}
