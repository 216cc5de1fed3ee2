import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { definePolicy, type Obligations, permit } from "../src/policy.ts";
import { gatewaySettingsSchema, tryRead } from "../src/schemas.ts";
import {
  type BudgetPeriod,
  budgetPeriods,
  type EndpointName,
  endpointNames,
} from "../src/store.ts";

// Each table below has one entry for each member of a closed list. The compiler names it when a member is added.

const hour = 3_600_000;

/** How long each period lasts from its start on 2026-03-01, in hours; null if it never ends. */
const lengths: Readonly<Record<BudgetPeriod, number | null>> = {
  hour: 1,
  day: 24,
  week: 7 * 24,
  month: 31 * 24,
  total: null,
};

/** The path and the body that open a Step on each endpoint. */
const requests: Readonly<Record<EndpointName, readonly [path: string, input: object]>> = {
  chat_completions: ["/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }] }],
  responses: ["/v1/responses", { input: "Hi" }],
};

/** An example of each obligation. */
const obligations: Required<Obligations> = {
  fallbacks: ["test/a/two"],
  maxOutputTokens: 9,
  transcript: "digest",
  serviceTier: "default",
  connection: "customer",
};

describe("a budget period", () => {
  it.each(budgetPeriods)("%s has a length and can be configured", async (period) => {
    const budgets = [{ id: "b", limit: { requests: 1 }, period }];
    const { gateway, chat, clock } = await createTestGateway({ budgets });
    clock.setWall("2026-03-01T00:00:00Z");
    await gateway.fetch(chat());
    const { data } = await gateway.budgets.status({ id: "b" });
    const [{ periodStart, resetsAt } = { periodStart: "", resetsAt: null }] = data;
    const length =
      resetsAt === null ? null : (Date.parse(resetsAt) - Date.parse(periodStart)) / hour;
    expect(length).toBe(lengths[period]);
  });
});

describe("an endpoint", () => {
  it.each(endpointNames)("%s names its Steps, and filters select them by it", async (endpoint) => {
    const [path, input] = requests[endpoint];
    const { gateway, key, provider } = await createTestGateway();
    provider.reply("Hello");
    const answer = await gateway.fetch(`http://gateway.test${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "test/a/one", ...input }),
    });
    expect(answer.status).toBe(200);
    const { organizationId } = key;
    const { data } = await gateway.steps.list({ organizationId, endpoint });
    expect(data.map((step) => step.endpoint)).toEqual([endpoint]);
  });
});

describe("an obligation", () => {
  const facts = {
    ...{ organization: "o", user: "u", key: "k", source: "api", dataClass: "D1_INTERNAL" },
    ...{ gateway: "test", vendor: "a", model: "one", listed: true },
    connection: "platform",
    ...{ tools: false, images: false, structuredOutput: false, serviceTier: "default" },
    ...{ estimatedInputTokens: 1, estimatedOutputTokens: 1, estimatedCostNanoUsd: null },
  } as const;
  const pipeline = join(import.meta.dirname, "../src/pipeline");
  const source = readdirSync(pipeline)
    .map((file) => readFileSync(join(pipeline, file), "utf8"))
    .join("\n");

  it.each(Object.entries(obligations))("%s is read, merged and met", (name, value) => {
    const rules = [permit("first", {}, { [name]: value }), permit("second")];
    expect(tryRead(gatewaySettingsSchema, { policy: { rules } }).problems).toEqual([]);
    const verdict = definePolicy({ rules }).decide(facts, ["D1_INTERNAL"]);
    expect(verdict.obligations).toEqual({ [name]: value });
    expect(source).toMatch(new RegExp(`obligations\\??\\.${name}\\b`));
  });
});
