import { createGateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";
import { written } from "./written.ts";

const ask = (secret: string, gateway = "http://in-process") =>
  new Request(`${gateway}/v1/key`, { headers: { authorization: `Bearer ${secret}` } });

describe.each(stores)("GET /v1/key, on %s", (_, open) => {
  it("shows what the calling key may do, and what its budgets and rate limits have left", async () => {
    const { gateway, key, chat, provider } = await createTestGateway({
      store: open(),
      key: { models: ["test/tollgate/*"], minimumDataClass: "D1_INTERNAL" },
      aliases: { plain: "test/tollgate/scripted" },
      budgets: [
        { id: "month", limit: { usd: 5 }, period: "month", scope: { each: "key" } },
        { id: "all", limit: { requests: 3 }, period: "total", scope: { model: "test/*/*" } },
      ],
      rateLimits: [
        { id: "pace", limit: { requests: 60 }, per: "minute", burst: 5, scope: { each: "user" } },
        { id: "at-once", limit: { concurrentSteps: 4 } },
        { id: "models", limit: { tokens: 90_000 }, per: "hour", scope: { each: "model" } },
      ],
    });
    const raise = { id: "all", by: { requests: 2 }, until: "2026-02-01T00:00:00.000Z" };
    await gateway.budgets.raise(raise);
    provider.reply({ text: ["Hello"], usage: { promptTokens: 1_000, completionTokens: 1 } });
    expect((await gateway.fetch(chat())).status).toBe(200);
    const answer = await gateway.fetch(ask(key.secret));
    expect(answer.status).toBe(200);
    const spent = (await gateway.budgets.status({ id: "month" })).data[0]?.settled ?? 0;
    expect(spent).toBeGreaterThan(0);
    const everything = { gateways: null, connection: null, models: null };
    expect(await answer.json()).toEqual({
      object: "key",
      id: key.id,
      label: key.label,
      organization_id: key.organizationId,
      user_id: key.userId,
      source: "api",
      default_data_class: "D1_INTERNAL",
      minimum_data_class: "D1_INTERNAL",
      models: [["test/tollgate/*"]],
      aliases: { plain: "test/tollgate/scripted" },
      budgets: [
        {
          id: "month",
          unit: "usd",
          mode: "hard",
          period: "month",
          limit: 5e9,
          remaining: 5e9 - spent,
          resets_at: "2026-02-01T00:00:00.000Z",
          ...everything,
        },
        {
          id: "all",
          unit: "requests",
          mode: "hard",
          period: "total",
          limit: 5,
          remaining: 4,
          resets_at: null,
          ...everything,
          models: ["test/*/*"],
        },
      ],
      rate_limits: [
        {
          id: "pace",
          unit: "requests",
          per: "minute",
          limit: 60,
          burst: 5,
          each: null,
          remaining: 4,
          reset_ms: 1_000,
          ...everything,
        },
        {
          id: "at-once",
          unit: "steps",
          per: null,
          limit: 4,
          burst: 0,
          each: null,
          remaining: 4,
          reset_ms: 0,
          ...everything,
        },
        {
          id: "models",
          unit: "tokens",
          per: "hour",
          limit: 90_000,
          burst: 9_000,
          each: "model",
          remaining: null,
          reset_ms: null,
          ...everything,
        },
      ],
      has_more: false,
    });
  });
});

describe("GET /v1/key", () => {
  it("shows no budget that counts only others, and names nobody that a shared one counts", async () => {
    const { gateway, key, createKey } = await createTestGateway({
      budgets: [
        { id: "theirs", limit: { usd: 1 }, period: "day", scope: { organization: "other" } },
        {
          id: "two",
          limit: { usd: 1 },
          period: "day",
          scope: { organization: ["organization-1", "other"] },
        },
      ],
    });
    const { key: other } = await createKey({ organizationId: "other" });
    const [own, theirs] = await Promise.all(
      [key, other].map(async ({ secret }) => (await gateway.fetch(ask(secret))).text()),
    );
    expect(own).toContain('"id":"two"');
    expect(own).not.toContain("theirs");
    expect(own).not.toContain("other");
    expect(theirs).toContain('"id":"theirs"');
  });

  it("shows a budget that another process has just created", async () => {
    const { gateway, key, store, clock, provider } = await createTestGateway();
    await gateway.fetch(ask(key.secret));
    const peer = createGateway({ store, clock, providers: { test: provider }, maintenance: false });
    await peer.budgets.create({ id: "new", limit: { usd: 1 }, period: "day" });
    expect(await (await gateway.fetch(ask(key.secret))).text()).toContain('"id":"new"');
  });

  it("shows all of a limit that nothing has counted yet", async () => {
    const { gateway, key } = await createTestGateway({
      budgets: [{ id: "day", limit: { requests: 3 }, period: "day" }],
      rateLimits: [
        { id: "pace", limit: { requests: 60 }, per: "minute", burst: 5 },
        { id: "at-once", limit: { concurrentSteps: 4 } },
      ],
    });
    expect(await (await gateway.fetch(ask(key.secret))).json()).toMatchObject({
      budgets: [{ id: "day", remaining: 3 }],
      rate_limits: [
        { id: "pace", remaining: 5, reset_ms: 0 },
        { id: "at-once", remaining: 4 },
      ],
    });
  });

  it("shows at most 100 budgets, and says that there are more", async () => {
    const budgets = Array.from({ length: 101 }, (_, index) => {
      return { id: `b${index}`, limit: { requests: 1 }, period: "day" } as const;
    });
    const { gateway, key } = await createTestGateway({ budgets });
    const answer = await (await gateway.fetch(ask(key.secret))).json();
    expect(answer).toMatchObject({ has_more: true });
    expect(answer).toHaveProperty("budgets.length", 100);
  });

  it("names no model behind an alias that the key can't use", async () => {
    const { gateway, createKey } = await createTestGateway({
      gateways: ["open", "secret"],
      policy: definePolicy({
        rules: [permit("all"), forbid("apart", { gateway: "secret", organization: "rival" })],
      }),
      aliases: { small: "open/a/x", unreleased: "secret/a/y" },
    });
    const answerTo = async (organizationId: string): Promise<unknown> => {
      const { key } = await createKey({ organizationId, aliases: { own: "secret/a/y" } });
      return (await gateway.fetch(ask(key.secret))).json();
    };
    expect(await answerTo("acme")).toHaveProperty("aliases", {
      small: "open/a/x",
      unreleased: "secret/a/y",
      own: "secret/a/y",
    });
    expect(await answerTo("rival")).toHaveProperty("aliases", { small: "open/a/x" });
  });

  it("rejects an unknown key and other methods, and records nothing", async () => {
    const { gateway, key } = await createTestGateway();
    expect((await gateway.fetch(ask(`${key.secret}x`))).status).toBe(401);
    const post = await gateway.fetch(new Request(ask(key.secret), { method: "POST", body: "{}" }));
    expect([post.status, post.headers.get("allow")]).toEqual([405, "GET"]);
    await gateway.fetch(ask(key.secret));
    expect(await written(gateway)).toEqual({ steps: 0, sessions: 0, decisions: 0 });
  });

  it("has a handler of its own, for hosts with their own router", async () => {
    const { gateway, key } = await createTestGateway();
    expect(await (await gateway.handlers.getKey(ask(key.secret))).json()).toMatchObject({
      id: key.id,
    });
  });
});
