import { createGateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { simProvider } from "@tollgate/provider-sim";
import { memoryStore } from "@tollgate/store-memory";

/** This app's gateway. It keeps records in memory, and its provider needs no account. */
export const gateway = createGateway({
  store: memoryStore(),
  providers: { sim: simProvider({ pace: 5 }) },
  policy: definePolicy({
    rules: [
      permit("internal", { gateway: "sim", upTo: "D1_INTERNAL" }),
      forbid("no-previews", { model: "*/*/*-preview" }),
    ],
  }),
  budgets: [
    {
      id: "acme-day",
      scope: { organization: "acme" },
      limit: { usd: 1 },
      period: "day",
      mode: "hard",
    },
  ],
});

/** Creates a key for the only user, and says how to use it. */
export async function introduce(url: string): Promise<string> {
  const { secret } = await gateway.keys.create({
    organizationId: "acme",
    userId: "ada",
    label: "laptop",
  });
  return `The gateway is mounted at ${url}/ai/v1. Its API key is ${secret}. See its spend at ${url}/spend.`;
}

/** The organization's calls so far, with their cost. */
export async function spend() {
  const { data } = await gateway.activity.list({ organizationId: "acme" });
  return data.map(({ model, keyLabel, totalTokens, costNanoUsd }) => ({
    model,
    keyLabel,
    totalTokens,
    costNanoUsd,
  }));
}
