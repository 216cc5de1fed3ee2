import { createGateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { simProvider } from "@tollgate/provider-sim";
import { memoryStore } from "@tollgate/store-memory";

/** The gateway of this app: its records last as long as the process, and its provider needs no account. */
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

/** A key for the one user there is, and how to use it. */
export async function introduce(url: string): Promise<string> {
  const { secret } = await gateway.keys.create({
    organizationId: "acme",
    userId: "ada",
    label: "laptop",
  });
  return `The gateway is mounted at ${url}/ai/v1, a key for it is ${secret}; its spend is at ${url}/spend.`;
}

/** What the organization has used so far. */
export async function spend() {
  const { data } = await gateway.activity.list({ organizationId: "acme" });
  return data.map(({ model, keyLabel, totalTokens, costNanoUsd }) => ({
    model,
    keyLabel,
    totalTokens,
    costNanoUsd,
  }));
}
