import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { type ModelFacts, ProviderError } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { countingIds, createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { endpoints, isConversation } from "./endpoints.ts";
import { type EventLog, eventLog } from "./event-log.ts";
import { stores } from "./stores.ts";
import { failureOf } from "./wire.ts";
import { heldOn } from "./written.ts";

// "Hello" is estimated at 10 tokens of input; with a cap of 10 a request holds 20 tokens, or 30,000 nanodollars.
const capped = { max_completion_tokens: 10 };

async function counter(gateway: TestGateway["gateway"], id: string) {
  const { data } = await gateway.budgets.status({ id });
  return data.map(({ settled, held }) => ({ settled, held }));
}

const failing = (): never => {
  throw new Error("no prices today");
};

const textOf = async (answer: Promise<Response>): Promise<string> => (await answer).text();

describe.each(stores)("a hard budget on %s", (_, open) => {
  it.each([
    ["the same model again", { retries: { allowDuplicates: true } }],
    [
      "a fallback",
      {
        retries: { allowDuplicates: true, max: 0 },
        policy: definePolicy({
          rules: [permit("all", {}, { fallbacks: ["spare/tollgate/scripted"] })],
        }),
      },
    ],
  ])("lowered while an attempt fails is not exceeded by %s", async (_way, options) => {
    const store = open();
    const test = await createTestGateway({ store, ...options });
    const other = await createTestGateway({ store, ids: countingIds(1) });
    const tokens = { id: "tokens", limit: { tokens: 1_000 }, period: "day" } as const;
    await test.gateway.budgets.create(tokens);
    test.provider.reply(async () => {
      await other.gateway.budgets.update({ ...tokens, limit: { tokens: 30 } });
      throw new ProviderError("lost", { reason: "connection_reset", delivery: "unknown" });
    });
    const asked = test.gateway.fetch(test.chat(capped));
    expect((await test.clock.until(asked)).status).toBe(502);
    expect(test.provider.calls).toHaveLength(1);
    expect(await counter(test.gateway, "tokens")).toEqual([{ settled: 20, held: 0 }]);
  });

  it.each([
    ["requests", { requests: 50 }, 1, 1],
    ["tokens", { tokens: 1_000 }, 20, 15],
    ["usd", { usd: "0.0015" }, 30_000, 20_000],
  ] as const)(
    "with room for 50 of 200 concurrent requests lets exactly 50 through, in %s (B1, S16)",
    async (_unit, limit, estimate, actual) => {
      const { gateway, provider, chat } = await createTestGateway({
        store: open(),
        budgets: [{ id: "fifty", limit, period: "day" }],
      });
      const hold = provider.hold();
      const refused: Response[] = [];
      const answers = Array.from({ length: 200 }, async (_, at) => {
        const answer = await gateway.fetch(chat({ ...capped, stream: at % 2 === 0 }));
        if (answer.status === 429) refused.push(answer);
        return [answer.status, await answer.text()] as const;
      });
      await hold.reached(50);
      expect(await counter(gateway, "fifty")).toEqual([{ settled: 0, held: 50 * estimate }]);
      while (refused.length < 150) await new Promise((resolve) => setImmediate(resolve));
      expect(provider.calls).toHaveLength(50);
      hold.release();
      const statuses = (await Promise.all(answers)).map(([status]) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(50);
      expect(await counter(gateway, "fifty")).toEqual([{ settled: 50 * actual, held: 0 }]);
    },
  );

  const budgets = [
    { id: "requests", limit: { requests: 100 }, period: "day" },
    { id: "tokens", limit: { tokens: 100_000 }, period: "month" },
    { id: "usd", limit: { usd: 1 }, period: "total" },
    { id: "tiny", scope: { model: "test/a/dear" }, limit: { usd: "0.000001" }, period: "total" },
  ] as const;
  const down = new ProviderError("Down.", { reason: "down", delivery: "unknown" });
  const busy = { reason: "status_503", delivery: "answered", status: 503 } as const;

  type Amounts = readonly [requests: number, tokens: number, usd: number];

  /**
   * Each way in which a request can end, and the amounts it settles on three budgets: of a conversation, and of embeddings,
   * which can't end in mid-stream.
   */
  const endings: readonly (readonly [
    name: string,
    run: (test: TestGateway, log: EventLog) => Promise<unknown>,
    settled: Amounts,
    embedded?: Amounts,
  ])[] = [
    [
      "completed, plain",
      ({ gateway, chat }) => textOf(gateway.fetch(chat())),
      [1, 15, 20_000],
      [1, 10, 10_000],
    ],
    [
      "completed, streamed",
      ({ gateway, chat }) => textOf(gateway.fetch(chat({ stream: true }))),
      [1, 15, 20_000],
    ],
    [
      "refused by the policy",
      ({ gateway, chat }) => textOf(gateway.fetch(chat({ model: "test/a/forbidden" }))),
      [0, 0, 0],
      [0, 0, 0],
    ],
    [
      "refused by one of its budgets",
      ({ gateway, chat }) => textOf(gateway.fetch(chat({ model: "test/a/dear" }))),
      [0, 0, 0],
      [0, 0, 0],
    ],
    [
      "failed, answered with an error status",
      ({ gateway, provider, chat, clock }) => {
        provider.fail(new ProviderError("Busy.", busy), { times: 3 });
        return clock.until(textOf(gateway.fetch(chat())));
      },
      [1, 0, 0],
      [1, 0, 0],
    ],
    [
      "failed, before the first event, outcome unknown",
      ({ gateway, provider, chat }) => {
        provider.fail(down);
        return textOf(gateway.fetch(chat()));
      },
      [1, 20, 30_000],
      [1, 10, 10_000],
    ],
    [
      "failed in mid-stream",
      async ({ gateway, provider, chat }) => {
        provider.fail(down, { afterEvents: 2, answer: { text: ["123456", "x"] } });
        await textOf(gateway.fetch(chat({ stream: true })));
      },
      [1, 12, 14_000],
    ],
    [
      "silent until the deadline",
      ({ gateway, provider, chat, clock }) => {
        provider.hold();
        return clock.until(textOf(gateway.fetch(chat())));
      },
      [1, 20, 30_000],
      [1, 10, 10_000],
    ],
    [
      "client gone in mid-stream",
      async ({ gateway, provider, chat }, log) => {
        provider.hold({ afterEvents: 2 });
        provider.reply({ text: ["123456", "x"] });
        const answer = await gateway.fetch(chat({ stream: true }));
        await answer.body?.cancel();
        await log.seeing("step.settled");
      },
      [1, 12, 14_000],
    ],
    [
      "client gone before the first byte",
      async ({ gateway, provider, chat }, log) => {
        const hold = provider.hold();
        const client = new AbortController();
        const stream = chat({ stream: true });
        const answer = gateway.fetch(new Request(stream, { signal: client.signal }));
        await hold.reached();
        client.abort();
        await expect(answer).rejects.toThrow("abort");
        await log.seeing("step.settled");
      },
      [1, 20, 30_000],
    ],
    [
      "client gone from a plain answer",
      async ({ gateway, provider, chat }, log) => {
        const hold = provider.hold();
        const client = new AbortController();
        const answer = gateway.fetch(new Request(chat(), { signal: client.signal }));
        await hold.reached();
        client.abort();
        await expect(answer).rejects.toThrow("abort");
        hold.release();
        await log.seeing("step.settled");
      },
      [1, 15, 20_000],
      [1, 10, 10_000],
    ],
  ];

  const everywhere = endpoints.flatMap((endpoint) =>
    endings.flatMap(([name, run, settled, embedded]) => {
      const amounts = isConversation(endpoint) ? settled : embedded;
      return amounts ? [[endpoint.name, name, endpoint, run, amounts] as const] : [];
    }),
  );

  it.each(everywhere)("holds nothing after %s that %s (B2, S17)", async (...of) => {
    const [, , endpoint, run, settled] = of;
    const log = eventLog();
    const policy = definePolicy({
      rules: [permit("all"), forbid("forbidden", { model: "test/a/forbidden" })],
    });
    const prices = { "test/a/dear": { input: 1, output: 1 } };
    const { observers } = log;
    const test = await createTestGateway({ store: open(), policy, budgets, prices, observers });
    const capped = isConversation(endpoint) ? { [endpoint.cap]: 10 } : {};
    const chat = (fields: object = {}) =>
      endpoint.request(test.key.secret, { ...capped, ...fields });
    await run({ ...test, chat }, log);
    const [requests, tokens, usd] = settled;
    const ended = async (id: string) =>
      (await counter(test.gateway, id))[0] ?? { settled: 0, held: 0 };
    expect(await ended("requests")).toEqual({ settled: requests, held: 0 });
    expect(await ended("tokens")).toEqual({ settled: tokens, held: 0 });
    expect(await ended("usd")).toEqual({ settled: usd, held: 0 });
    expect(await heldOn(test.gateway, "tiny")).toBe(0);
  });

  it("is freed by recovery when its settlement fails permanently", async () => {
    const store = open();
    let isBroken = true;
    const broken: Store = {
      ...store,
      async settleStep(settlement) {
        if (isBroken) throw new Error("no disk");
        return store.settleStep(settlement);
      },
    };
    const { gateway, clock, chat } = await createTestGateway({ store: broken, budgets });
    expect((await clock.until(gateway.fetch(chat(capped)))).status).toBe(503);
    expect(await heldOn(gateway, "tokens")).toBe(20);
    isBroken = false;
    await clock.advance("30s");
    expect(await heldOn(gateway, "tokens")).toBe(0);
  });

  it("created at run time applies to new requests while others run", async () => {
    const { gateway, provider, chat } = await createTestGateway({ store: open() });
    const hold = provider.hold();
    const running = gateway.fetch(chat());
    await hold.reached();
    await gateway.budgets.create({ id: "late", limit: { requests: 1 }, period: "day" });
    const both = [gateway.fetch(chat()), gateway.fetch(chat())];
    await hold.reached(2);
    await gateway.budgets.update({ id: "late", limit: { requests: 2 }, period: "day" });
    const third = gateway.fetch(chat());
    await hold.reached(3);
    hold.release();
    const statuses = (await Promise.all([running, ...both, third])).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 200, 200, 429]);
    expect(await counter(gateway, "late")).toEqual([{ settled: 2, held: 0 }]);
    await gateway.budgets.remove({ id: "late" });
    expect((await gateway.fetch(chat())).status).toBe(200);
  });

  it("created by another gateway on the store applies to the next request here", async () => {
    const store = open();
    const here = await createTestGateway({ store });
    const there = await createTestGateway({
      store,
      clock: here.clock,
      ids: countingIds(1),
    });
    await here.gateway.fetch(here.chat());
    await there.gateway.budgets.create({ id: "shut", limit: { requests: 0 }, period: "day" });
    expect((await here.gateway.fetch(here.chat())).status).toBe(429);
  });
});

describe("a budget", () => {
  it("counts the calls in its scope, separately for each key", async () => {
    const { gateway, key, chat, createKey } = await createTestGateway({
      budgets: [
        { id: "each", scope: { each: "key" }, limit: { requests: 1 }, period: "day" },
        { id: "model", scope: { model: "test/a/*" }, limit: { requests: 0 }, period: "day" },
        { id: "user", scope: { each: "user" }, limit: { requests: 9 }, period: "day" },
      ],
    });
    const other = await createKey();
    expect((await gateway.fetch(chat())).status).toBe(200);
    expect((await gateway.fetch(other.chat())).status).toBe(200);
    expect((await gateway.fetch(chat())).status).toBe(429);
    expect(await failureOf(gateway.fetch(other.chat({ model: "test/a/b" })))).toMatchObject({
      message: expect.stringMatching(/^The budget (each|model) doesn't have enough left/),
    });
    const { data } = await gateway.budgets.status({ id: "each" });
    expect(data.map(({ subject }) => subject).sort()).toEqual([key.id, other.key.id].sort());
    expect((await gateway.budgets.status({ id: "user" })).data).toMatchObject([
      { subject: JSON.stringify(["organization-1", "user-1"]), settled: 2 },
    ]);
  });

  it("reveals only its id and when it resets", async () => {
    const { gateway, chat } = await createTestGateway({
      budgets: [{ id: "acme-month", limit: { usd: "0.00001" }, period: "month" }],
    });
    const answer = await gateway.fetch(chat());
    expect(answer.headers.get("retry-after")).toBe(String(31 * 86_400));
    expect((await failureOf(answer)).message).toBe(
      "The budget acme-month doesn't have enough left for this request. It resets at 2026-02-01T00:00:00.000Z.",
    );
  });

  it("counts a request in the period in which it was admitted, and starts empty in the next (S23)", async () => {
    const { gateway, provider, clock, chat } = await createTestGateway({
      budgets: [{ id: "hour", limit: { requests: 1 }, period: "hour" }],
    });
    const hold = provider.hold();
    await clock.advance(3_600_000 - 1);
    const first = gateway.fetch(chat());
    await hold.reached();
    expect((await gateway.fetch(chat())).status).toBe(429);
    await clock.advance(1);
    const second = gateway.fetch(chat());
    await hold.reached(2);
    hold.release();
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
    expect(await counter(gateway, "hour")).toEqual([{ settled: 1, held: 0 }]);
  });

  it("is listed by id in pages, for everyone or for one organization", async () => {
    const limit = { requests: 1 };
    const { gateway } = await createTestGateway({
      budgets: [
        { id: "b", limit, period: "day" },
        { id: "a", limit, period: "day", scope: { organization: ["acme", "other"] } },
      ],
    });
    await gateway.budgets.create({
      id: "c",
      limit,
      period: "day",
      scope: { organization: "acme" },
    });
    const first = await gateway.budgets.list({}, { limit: 2 });
    expect(first.data.map(({ id, origin }) => [id, origin])).toEqual([
      ["a", "declared"],
      ["b", "declared"],
    ]);
    const rest = gateway.budgets.list({}, { cursor: first.nextCursor });
    expect((await rest).data.map(({ id }) => id)).toEqual(["c"]);
    const others: string[] = [];
    for await (const { id } of gateway.budgets.list({ organizationId: "other" }, { limit: 1 }))
      others.push(id);
    expect(others).toEqual(["a", "b"]);
  });

  it("that is soft records calls and lets them pass", async () => {
    const { gateway, provider, chat } = await createTestGateway({
      budgets: [
        { id: "usd", limit: { usd: 0 }, period: "day", mode: "soft" },
        { id: "requests", limit: { requests: 1 }, period: "day", mode: "soft" },
      ],
    });
    const hold = provider.hold();
    const answers = [1, 2, 3].map(() => gateway.fetch(chat()));
    await hold.reached(3);
    expect(await counter(gateway, "usd")).toEqual([{ settled: 0, held: 0 }]);
    hold.release();
    for (const answer of answers) expect((await answer).status).toBe(200);
    expect(provider.calls[0]?.request.maxOutputTokens).toBeUndefined();
    expect(await counter(gateway, "usd")).toEqual([{ settled: 60_000, held: 0 }]);
    expect(await counter(gateway, "requests")).toEqual([{ settled: 3, held: 0 }]);
  });

  it.each([
    ["hard in usd", { usd: 1 }, "hard", 4_096],
    ["hard in tokens", { tokens: 100_000 }, "hard", 4_096],
    ["hard in requests", { requests: 10 }, "hard", undefined],
    ["soft in usd", { usd: 1 }, "soft", undefined],
  ] as const)("%s sends the output cap upstream: %s", async (_, limit, mode, cap) => {
    const { gateway, provider, chat } = await createTestGateway({
      budgets: [{ id: "cap", limit, period: "day", mode }],
    });
    await gateway.fetch(chat());
    await gateway.fetch(chat(capped));
    expect(provider.calls.map(({ request }) => request.maxOutputTokens)).toEqual([cap, 10]);
  });

  it("uses the model's own cap if it has one, and records usage beyond a hold in full", async () => {
    const { gateway, provider, chat } = await createTestGateway({
      models: { "tollgate/scripted": { input: 1, output: 2, maxOutputTokens: 12 } },
      budgets: [{ id: "tokens", limit: { tokens: 30 }, period: "day" }],
    });
    provider.reply({ text: "long", usage: { promptTokens: 40, completionTokens: 60 } });
    await gateway.fetch(chat());
    expect(provider.calls[0]?.request.maxOutputTokens).toBe(12);
    const { data } = await gateway.budgets.status({ id: "tokens" });
    expect(data).toMatchObject([{ settled: 100, held: 0, remaining: -70 }]);
    expect((await gateway.fetch(chat({ max_tokens: 1 }))).status).toBe(429);
  });

  it("in US dollars requires a price: a missing one rejects the call, an explicit 0 is a price (S22)", async () => {
    const { gateway, provider, chat } = await createTestGateway({
      models: {},
      prices: { "test/a/free": { input: 0, output: 0 } },
      budgets: [{ id: "usd", limit: { usd: "0.000000001" }, period: "day" }],
    });
    const failure = await failureOf(gateway.fetch(chat({ model: "test/a/unknown" })));
    expect(failure).toMatchObject({ code: "price_unknown" });
    expect(provider.calls).toEqual([]);
    expect((await gateway.fetch(chat({ model: "test/a/free" }))).status).toBe(200);
    expect(await counter(gateway, "usd")).toEqual([{ settled: 0, held: 0 }]);
  });

  it.each([
    ["that fails", failing],
    // An unhandled rejection would end the process, and this test run.
    ["that is async by mistake", async () => failing()],
  ])("in US dollars treats a price book %s as one without a price", async (_, answer) => {
    const log = eventLog();
    const priceOf = (): null => Object(answer());
    const factsOf = (): ModelFacts => Object(answer());
    const prices = { priceOf, factsOf };
    const { observers } = log;
    const options = { models: {}, prices, observers };
    const free = await createTestGateway(options);
    expect((await free.gateway.fetch(free.chat())).status).toBe(200);
    const { data } = await free.gateway.steps.list({ organizationId: free.key.organizationId });
    expect(data).toMatchObject([{ costNanoUsd: null }]);
    const budgets = [{ id: "usd", limit: { usd: 1 }, period: "day" }] as const;
    const bound = await createTestGateway({ ...options, budgets });
    expect(await failureOf(bound.gateway.fetch(bound.chat()))).toMatchObject({
      code: "price_unknown",
    });
    expect(log.seen).toContainEqual(
      expect.objectContaining({ type: "gateway.degraded", what: "prices" }),
    );
  });

  it("with limit 0 rejects everything, even at an explicit price of 0 (S22)", async () => {
    for (const limit of [{ usd: 0 }, { tokens: 0 }, { requests: 0 }]) {
      const { gateway, chat } = await createTestGateway({
        models: { "tollgate/scripted": { input: 0, output: 0 } },
        budgets: [{ id: "none", limit, period: "day" }],
      });
      expect((await gateway.fetch(chat())).status).toBe(429);
    }
  });

  it("is held together with the others of its kind, or not at all (B3)", async () => {
    const { gateway, chat } = await createTestGateway({
      budgets: [
        { id: "a", limit: { requests: 10 }, period: "day" },
        { id: "b", limit: { requests: 0 }, period: "day" },
        { id: "c", limit: { requests: 10 }, period: "day" },
      ],
    });
    expect((await gateway.fetch(chat())).status).toBe(429);
    expect(await heldOn(gateway, "a")).toBe(0);
    expect(await heldOn(gateway, "c")).toBe(0);
  });

  it("is held together with those of other units, or not at all, however many calls come at once (B3)", async () => {
    const { gateway, provider, chat } = await createTestGateway({
      budgets: [
        { id: "dollars", limit: { usd: 1 }, period: "day" },
        { id: "requests", limit: { requests: 100 }, period: "day" },
        { id: "tokens", limit: { tokens: 70 }, period: "day" },
      ],
    });
    const hold = provider.hold();
    const answers = Array.from({ length: 20 }, () => gateway.fetch(chat(capped)));
    await hold.reached(3);
    const refusals = await Promise.all(answers.slice(3).map((answer) => failureOf(answer)));
    for (const { message } of refusals) expect(message).toContain("tokens");
    expect([
      await heldOn(gateway, "dollars"),
      await heldOn(gateway, "requests"),
      await heldOn(gateway, "tokens"),
    ]).toEqual([90_000, 3, 60]);
    hold.release();
    for (const answer of answers.slice(0, 3)) expect((await answer).status).toBe(200);
  });
});
