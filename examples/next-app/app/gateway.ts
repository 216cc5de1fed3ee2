import { createGateway, type Gateway } from "@tollgate/core";
import { definePolicy, permit } from "@tollgate/core/policy";
import { oneGateway } from "@tollgate/next";
import { simProvider } from "@tollgate/provider-sim";
import { sqliteStore } from "@tollgate/store-sqlite";
import { organizationId, visitorOf } from "./visitor.ts";

export const budgetId = "chat-day";

const open = (): Gateway =>
  createGateway({
    store: sqliteStore({ filename: process.env["TOLLGATE_DATABASE"] ?? "tollgate.db" }),
    // This provider needs no account. Replace it with a vendor's, or add one next to it.
    providers: { sim: simProvider({ pace: 25 }) },
    // Signed-in visitors don't need an API key; other clients do.
    authenticate: visitorOf,
    // The model is free, so it gets the price of a large one to show some spend.
    prices: { "sim/tollgate/echo": { input: "50", output: "150" } },
    policy: definePolicy({
      rules: [permit("chat", { organization: organizationId, gateway: "sim" })],
    }),
    budgets: [
      {
        id: budgetId,
        scope: { organization: organizationId },
        limit: { usd: "0.10" },
        period: "day",
        mode: "hard",
      },
    ],
  });

/** This app's gateway. It opens its database on the first request, not while Next builds. */
export const gateway = oneGateway(open);
