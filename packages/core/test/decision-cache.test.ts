import type { PriceBook } from "@tollgate/core";
import { combine, definePolicy, forbid, permit } from "@tollgate/core/policy";
import { countingIds, createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";
import { completionOf } from "./wire.ts";

/** Sends identical requests, so all but the first use the cache, and returns their statuses. */
async function statuses({ gateway, chat }: TestGateway, count: number): Promise<readonly number[]> {
  const seen: number[] = [];
  for (let at = 0; at < count; at++) seen.push((await gateway.fetch(chat())).status);
  return seen;
}

const own = { organizationId: "organization-1" };

describe.each(stores)("after identical requests, on %s", (_, open) => {
  it("the next one sees its key changed by another process", async () => {
    const store = open();
    const here = await createTestGateway({ store });
    const there = await createTestGateway({ store, clock: here.clock, ids: countingIds(1) });
    expect(await statuses(here, 3)).toEqual([200, 200, 200]);
    await there.gateway.keys.update({ ...own, id: here.key.id, models: ["test/other/*"] });
    expect(await statuses(here, 1)).toEqual([403]);
    await there.gateway.keys.update({ ...own, id: here.key.id, models: null });
    // A change that grants something takes effect within five seconds.
    await here.clock.advance("5s");
    expect(await statuses(here, 1)).toEqual([200]);
    await there.gateway.keys.revoke({ ...own, id: here.key.id });
    expect(await statuses(here, 1)).toEqual([401]);
  });

  it("the next one sees a budget that another process created, raised and removed", async () => {
    const store = open();
    const here = await createTestGateway({ store });
    const { gateway } = await createTestGateway({ store, clock: here.clock, ids: countingIds(1) });
    expect(await statuses(here, 2)).toEqual([200, 200]);
    await gateway.budgets.create({ id: "b", limit: { requests: 1 }, period: "day" });
    expect(await statuses(here, 2)).toEqual([200, 429]);
    const by = { requests: 1 };
    await gateway.budgets.raise({ id: "b", by, until: "2026-01-01T02:00:00Z" });
    expect(await statuses(here, 2)).toEqual([200, 429]);
    await gateway.budgets.remove({ id: "b" });
    expect(await statuses(here, 1)).toEqual([200]);
  });

  it("the next one sees the end of a raise, and a new period", async () => {
    const test = await createTestGateway({ store: open() });
    const { gateway, clock } = test;
    await gateway.budgets.create({ id: "b", limit: { requests: 3 }, period: "hour" });
    const by = { requests: 2 };
    await gateway.budgets.raise({ id: "b", by, until: "2026-01-01T00:00:02Z" });
    expect(await statuses(test, 4)).toEqual([200, 200, 200, 200]);
    // Less than five seconds later, so the caller is not read again.
    await clock.advance("3s");
    expect(await statuses(test, 1)).toEqual([429]);
    await gateway.budgets.update({ id: "b", limit: { requests: 9 }, period: "hour" });
    await clock.advance("59m");
    await clock.advance("54s");
    expect(await statuses(test, 2)).toEqual([200, 200]);
    await clock.advance("4s");
    expect(await statuses(test, 10)).toEqual([...Array(9).fill(200), 429]);
  });

  it("the next one sees another price", async () => {
    let input = 1_000;
    const prices: PriceBook = {
      priceOf: () => ({ input, output: 2_000, source: "custom" }),
      factsOf: () => ({ maxOutputTokens: null, reasons: null }),
    };
    const budgets = [{ id: "b", limit: { usd: 1_000 }, period: "day" }] as const;
    const test = await createTestGateway({ store: open(), models: {}, prices, budgets });
    expect(await statuses(test, 2)).toEqual([200, 200]);
    input = 7_000;
    await completionOf(test.gateway.fetch(test.chat()));
    const { data } = await test.store.steps.list(own, { cursor: null, limit: 9 });
    expect(data.map(({ attempts }) => attempts[0]?.price?.input)).toEqual([7_000, 1_000, 1_000]);
  });
});

describe("a cached verdict", () => {
  const rules = [
    permit("low", { upTo: "D1_INTERNAL" }),
    permit("tools", { tools: true }),
    permit("fast", { serviceTier: "priority" }),
    forbid("no-images", { images: true }),
  ];
  const tools = [{ type: "function", function: { name: "f", parameters: {} } }];
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
  const high = { "x-service-data-sensitivity": "D3_RESTRICTED" };

  it("applies to one class, one model, and the same use of tools, images and tiers", async () => {
    const { gateway, chat, createKey } = await createTestGateway({
      policy: definePolicy({ rules }),
      models: {},
    });
    const limited = await createKey({ models: ["test/a/*"] });
    // Each pair differs in one way only. Denied calls come last, because the caller is read again after them.
    const pairs = [
      [chat(), chat({}, high)],
      [chat({ tools }, high), chat({}, high)],
      [chat({ service_tier: "priority" }, high), chat({}, high)],
      [chat(), chat({ messages: [{ role: "user", content: [image] }] })],
      [limited.chat({ model: "test/a/b" }), limited.chat()],
    ] as const;
    for (const [permitted, denied] of pairs)
      for (const [request, status] of [
        [permitted, 200],
        [permitted, 200],
        [denied, 403],
      ] as const)
        expect((await gateway.fetch(request.clone())).status).toBe(status);
  });

  it("is not kept if the policy is a function, alone or combined with rules", async () => {
    let decisions = 0;
    const counting = definePolicy({
      version: "counting",
      decide: () => {
        decisions++;
        return { effect: decisions % 2 === 0 ? "deny" : "permit", rules: ["odd"] };
      },
    });
    const alone = await createTestGateway({ policy: counting });
    expect(await statuses(alone, 4)).toEqual([200, 403, 200, 403]);
    const combined = await createTestGateway({
      policy: combine(definePolicy({ rules }), counting),
    });
    expect(await statuses(combined, 4)).toEqual([200, 403, 200, 403]);
  });

  it("applies to one caller that the host names", async () => {
    const { gateway } = await createTestGateway({ policy: definePolicy({ rules }) });
    const caller = { organizationId: "o", userId: "u", label: "l" };
    const body = {
      model: "test/tollgate/scripted",
      messages: [{ role: "user", content: "Hello" }],
    };
    const ask = async (as: ReturnType<typeof gateway.as>): Promise<number> => {
      const headers = { "content-type": "application/json" };
      const init = { method: "POST", headers, body: JSON.stringify(body) };
      return (await as.fetch("http://in-process/v1/chat/completions", init)).status;
    };
    const free = gateway.as(caller);
    const limited = gateway.as({ ...caller, models: ["test/other/*"] });
    for (let round = 0; round < 3; round++)
      expect([await ask(free), await ask(limited)]).toEqual([200, 403]);
  });
});
