import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { stores } from "./stores.ts";

const tenant = { organizationId: "organization-1" };
const down = new ProviderError("Down.", { reason: "down", delivery: "not-sent" });

async function refusalsOf({ gateway }: TestGateway) {
  const { data } = await gateway.decisions.list({ ...tenant, refused: true });
  return data.map(({ effect, refusal }) => ({ effect, refusal }));
}

describe.each(stores)("the record of a refused request on %s", (_, open) => {
  it("names the budget, its counter, and the needed and remaining amounts", async () => {
    const log = eventLog();
    const test = await createTestGateway({
      store: open(),
      observers: log.observers,
      budgets: [{ id: "small", scope: { each: "key" }, limit: { tokens: 19 }, period: "total" }],
    });
    const { gateway, chat, key } = test;
    // "Hello" is estimated at 10 tokens, and the cap of 10 is held with it.
    const answer = await gateway.fetch(chat({ max_completion_tokens: 10 }));
    expect(answer.status).toBe(429);
    const refusal = {
      by: "budget",
      budgetId: "small",
      subject: key.id,
      unit: "tokens",
      needed: 20,
      left: 19,
    };
    expect(await refusalsOf(test)).toEqual([{ effect: "permit", refusal }]);
    const id = answer.headers.get("x-service-policy-decision-id") ?? "";
    expect(await gateway.decisions.get({ ...tenant, id })).toMatchObject({ refusal });
    expect(log.seen).toContainEqual(
      expect.objectContaining({ type: "request.denied", code: "budget_exceeded", refusal }),
    );
  });

  it("names the member whose price is unknown", async () => {
    const test = await createTestGateway({
      store: open(),
      models: {},
      budgets: [{ id: "dollars", limit: { usd: 1 }, period: "total" }],
    });
    expect((await test.gateway.fetch(test.chat())).status).toBe(403);
    expect(await refusalsOf(test)).toEqual([
      { effect: "permit", refusal: { by: "price", param: "model" } },
    ]);
  });

  it("names the missing account", async () => {
    const policy = definePolicy({ rules: [permit("own", {}, { connection: "customer" })] });
    const test = await createTestGateway({ store: open(), policy });
    expect((await test.gateway.fetch(test.chat())).status).toBe(400);
    expect(await refusalsOf(test)).toEqual([{ effect: "permit", refusal: { by: "connection" } }]);
  });

  it("says what refused a fallback", async () => {
    const policy = definePolicy({
      rules: [permit("all", {}, { fallbacks: ["test/a/dear"] })],
    });
    const test = await createTestGateway({
      store: open(),
      policy,
      retries: { max: 0 },
      budgets: [
        { id: "dear", scope: { model: "test/a/*" }, limit: { requests: 0 }, period: "day" },
      ],
    });
    test.provider.fail(down);
    expect((await test.gateway.fetch(test.chat())).status).toBe(502);
    expect(await refusalsOf(test)).toMatchObject([
      { effect: "permit", refusal: { by: "budget", budgetId: "dear", needed: 1, left: 0 } },
    ]);
  });

  it("differs from a denial and from a permit", async () => {
    const policy = definePolicy({ rules: [permit("plain", { model: "test/tollgate/*" })] });
    const { gateway, chat } = await createTestGateway({
      store: open(),
      policy,
      budgets: [{ id: "one", limit: { requests: 1 }, period: "total" }],
    });
    await gateway.fetch(chat());
    await gateway.fetch(chat());
    await gateway.fetch(chat({ model: "test/a/other" }));
    const found = async (
      filter: Omit<Parameters<typeof gateway.decisions.list>[0], "organizationId">,
    ) => (await gateway.decisions.list({ ...tenant, ...filter })).data.map(({ effect }) => effect);
    expect(await found({ refused: true })).toEqual(["permit"]);
    expect(await found({ refusal: ["budget", "price"] })).toEqual(["permit"]);
    expect(await found({ refusal: "connection" })).toEqual([]);
    expect(await found({ refused: false })).toEqual(["deny", "permit"]);
    const file = gateway.decisions.export({ ...tenant, refused: true }, { format: "csv" });
    const [head, row] = (await new Response(file).text()).split("\r\n");
    expect(head).toMatch(
      /refusedBy,refusedBudgetId,refusedRateLimitId,refusedSubject,refusedUnit,refusedNeeded,refusedLeft,refusedParam,embeddings$/,
    );
    expect(row).toMatch(/budget,one,,,requests,1,0,,false$/);
    // No other value is accepted, even if JavaScript passes it.
    await expect(Reflect.apply(found, undefined, [{ refusal: "policy" }])).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });
});
