import { createGateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { simProvider } from "@tollgate/provider-sim";
import { memoryStore } from "@tollgate/store-memory";

/** A gateway in this process, with a policy, a Budget, a store in memory and a provider that needs no account. */
export const createGovernedChat = () =>
  createGateway({
    store: memoryStore(),
    providers: { sim: simProvider() },
    policy: definePolicy({
      rules: [
        permit("up-to-internal", { gateway: "sim", upTo: "D1_INTERNAL" }),
        forbid("no-previews", { model: "*/*/*-preview" }),
      ],
    }),
    budgets: [
      {
        id: "two-a-day",
        scope: { each: "key" },
        limit: { requests: 2 },
        period: "day",
        mode: "hard",
      },
    ],
  });
