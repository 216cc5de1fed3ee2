/** This gateway with nothing switched off: keys, policy, prices, a hard budget, transcripts, evidence. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import type { Store } from "@tollgate/core/store";
import { serve } from "@tollgate/node";
import { openaiCompatible } from "@tollgate/provider-openai";

const folder = mkdtempSync(join(tmpdir(), "tollgate-bench-"));
const price = { input: "0.25", output: "2", cachedInput: "0.025", maxOutputTokens: 16_000 };

const gateway = createGateway({
  store: await openStore(),
  providers: {
    bench: openaiCompatible({
      baseURL: process.env["BENCH_UPSTREAM"] ?? "",
      apiKey: "bench",
      models: Object.fromEntries(
        ["plain", "burst", "paced", "slow"].map((model) => [`openai/${model}`, price]),
      ),
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

process.on("message", async () => process.send?.(await countActivity()));
process.on("disconnect", async () => {
  await server.close();
  await gateway.close();
  rmSync(folder, { recursive: true });
  process.exit(0);
});
process.send?.({ origin: server.url, headers: { authorization: `Bearer ${secret}` } });

async function openStore(): Promise<Store> {
  if (process.argv[2] === "memory") return (await import("@tollgate/store-memory")).memoryStore();
  const { sqliteStore } = await import("@tollgate/store-sqlite");
  return sqliteStore({ filename: join(folder, "bench.db") });
}

/** How many activity records there are: one for each completed call. */
async function countActivity(): Promise<number> {
  let count = 0;
  for await (const _ of gateway.activity.list({ organizationId: owner.organizationId })) count += 1;
  return count;
}
