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
    // A provider that needs no account; in its place, or beside it, goes one of a vendor.
    providers: { sim: simProvider({ pace: 25 }) },
    // Requests of signed-in visitors need no API key; other clients bring one.
    authenticate: visitorOf,
    // It costs nothing, so it is priced like a large model: there is spend to see.
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

/** The gateway of this app. It opens its database at the first request, not while Next builds. */
export const gateway = oneGateway(open);
