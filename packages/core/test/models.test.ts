import { definePolicy, permit } from "@tollgate/core/policy";
import type { Provider } from "@tollgate/core/provider";
import { catalogPrices } from "@tollgate/prices";
import { createTestGateway, scriptedProvider, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { failureOf } from "./wire.ts";
import { written } from "./written.ts";

const models = { "a/one": {}, "a/two": {}, "b/with/slashes": {} };

function get({ gateway, key }: TestGateway, path: string): Promise<Response> {
  return gateway.fetch(`http://in-process/v1/${path}`, {
    headers: { authorization: `Bearer ${key.secret}` },
  });
}

const object = (id: string, vendor: string) => ({
  id,
  object: "model",
  created: 0,
  owned_by: vendor,
});

describe("GET /v1/models", () => {
  it("lists the models of every gateway", async () => {
    const test = await createTestGateway({ models, gateways: ["other"] });
    const answer = await get(test, "models");
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      object: "list",
      data: ["test", "other"].flatMap((gateway) => [
        object(`${gateway}/a/one`, "a"),
        object(`${gateway}/a/two`, "a"),
        object(`${gateway}/b/with/slashes`, "b"),
      ]),
    });
  });

  it("shows only models that the key and, at its default class, the policy permit, and records nothing", async () => {
    const policy = definePolicy({
      rules: [
        permit("public", { upTo: "D0_PUBLIC" }),
        permit("internal", { model: "test/a/two", upTo: "D1_INTERNAL" }),
        permit("other", { model: "test/b/*" }),
      ],
    });
    const test = await createTestGateway({ models, policy, key: { models: ["test/a/*"] } });
    expect(await (await get(test, "models")).json()).toMatchObject({
      data: [{ id: "test/a/two" }],
    });
    expect((await get(test, "models/test/a/two")).status).toBe(200);
    expect((await get(test, "models/test/a/one")).status).toBe(404);
    expect((await get(test, "models/test/b/with/slashes")).status).toBe(404);
    expect(await written(test.gateway)).toEqual({ steps: 0, sessions: 0, decisions: 0 });
  });

  it("lists no models of a price book that is async by mistake", async () => {
    // An unhandled rejection would end the process, and this test run.
    const modelNames = (): string[] => Object(Promise.reject(new Error("a host's own")));
    const factsOf = () => ({ maxOutputTokens: null, reasons: null });
    const prices = { priceOf: () => null, factsOf, modelNames };
    const test = await createTestGateway({ models: {}, prices });
    expect(await (await get(test, "models")).json()).toEqual({ object: "list", data: [] });
  });

  it("returns one model, with plain or escaped slashes", async () => {
    const test = await createTestGateway({ models });
    for (const id of ["test/b/with/slashes", "test%2Fb%2Fwith%2Fslashes"]) {
      const answer = await get(test, `models/${id}`);
      expect(await answer.json()).toEqual(object("test/b/with/slashes", "b"));
    }
  });

  it.each(["test/a/none", "none/a/one", "one", "%", "test/a/one/"])(
    "answers 404 for the model %s",
    async (id) => {
      const test = await createTestGateway({ models, open: false });
      const answer = await get(test, `models/${id}`);
      expect(answer.status).toBe(404);
      expect((await failureOf(answer)).type).toBe("invalid_request_error");
    },
  );

  it("returns a model whose id contains /v1/, under any mount path", async () => {
    const names = [
      "acme/x/v1/y",
      "acme/v1/models",
      "v1/models/v1/models",
      "acme/v1/chat/completions",
    ];
    const { gateway, key } = await createTestGateway({
      models: Object.fromEntries(names.map((name) => [name, {}])),
    });
    for (const mount of ["", "/ai", "/v1", "/api/v1/tollgate"])
      for (const id of names.map((name) => `test/${name}`)) {
        const answer = await gateway.fetch(`http://in-process${mount}/v1/models/${id}`, {
          headers: { authorization: `Bearer ${key.secret}` },
        });
        expect(await answer.json()).toMatchObject({ id, object: "model" });
      }
  });

  it("requires a key, and allows no other method", async () => {
    const { gateway, key } = await createTestGateway();
    expect((await gateway.fetch("http://in-process/v1/models")).status).toBe(401);
    const answer = await gateway.fetch("http://in-process/v1/models", {
      method: "POST",
      headers: { authorization: `Bearer ${key.secret}` },
      body: "{}",
    });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET"]);
  });
});

describe("a gateway configured without models", () => {
  const names = async (test: TestGateway) => {
    const answer = await get(test, "models");
    expect(answer.status).toBe(200);
    const { data }: { data: readonly { id: string }[] } = JSON.parse(await answer.text());
    return data.map(({ id }) => id).filter((id) => !id.startsWith("test/"));
  };

  /** A gateway `gw` whose upstream lists these names or fails, and how often it was asked. */
  async function open(
    list: (signal: AbortSignal) => Promise<readonly string[]>,
    over: Partial<Provider> = {},
  ) {
    let asked = 0;
    const upstream = scriptedProvider({ vendor: "openai" }).at("gw");
    const listModels = (signal: AbortSignal) => {
      asked++;
      return list(signal);
    };
    const providers = { gw: { ...upstream, listModels, ...over } };
    return { test: await createTestGateway({ providers }), asked: () => asked };
  }

  it("serves every model that can be called, listed or not", async () => {
    const policy = definePolicy({ rules: [permit("all", { model: "*/a/*" })] });
    const test = await createTestGateway({ models: {}, policy });
    expect((await get(test, "models/test/a/any/thing")).status).toBe(200);
    expect((await get(test, "models/test/b/thing")).status).toBe(404);
    expect((await get(test, "models/test/a/..")).status).toBe(404);
  });

  it("lists the models of the price catalog, by ids that reach them", async () => {
    const providers = {
      openai: scriptedProvider({ vendor: "openai" }).at("openai"),
      openrouter: scriptedProvider().at("openrouter"),
      house: scriptedProvider({ vendor: "anthropic" }).at("house"),
      unknown: scriptedProvider().at("unknown"),
    };
    const test = await createTestGateway({ providers, prices: catalogPrices() });
    const ids = await names(test);
    expect(ids).toContain("openai/openai/gpt-5-mini");
    expect(ids).toContain("openrouter/openai/gpt-5-mini");
    expect(ids.filter((id) => id.startsWith("house/anthropic/")).length).toBeGreaterThan(3);
    expect(ids.filter((id) => id.startsWith("unknown/"))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    expect((await get(test, "models/openai/openai/gpt-5-mini")).status).toBe(200);
  });

  it("lists the upstream's own models, by ids that reach them and without fine-tuned ones", async () => {
    const { test, asked } = await open(async () => [
      ...["gpt-5", "acme/large", "gpt-5", "openai/gpt-5", "ft:gpt-5:acme::1"],
      ...["", "a b", "..", "/", "x".repeat(300)],
    ]);
    const ids = ["gw/openai/gpt-5", "gw/acme/large"];
    expect(await names(test)).toEqual(ids);
    expect([await names(test), asked()]).toEqual([ids, 1]);
  });

  it("asks its upstream once at a time, again after five minutes, and keeps its list on failure", async () => {
    const answers = [["one"], null, ["one", "two"]];
    const { test, asked } = await open(async () => {
      const answer = answers.shift();
      if (!answer) throw new Error("down");
      return answer;
    });
    const both = await Promise.all([names(test), names(test)]);
    expect([both, asked()]).toEqual([[["gw/openai/one"], ["gw/openai/one"]], 1]);
    await test.clock.advance(300_000);
    expect([await names(test), asked()]).toEqual([["gw/openai/one"], 2]);
    await test.clock.advance(29_999);
    expect([await names(test), asked()]).toEqual([["gw/openai/one"], 2]);
    await test.clock.advance(1);
    expect(await names(test)).toEqual(["gw/openai/one", "gw/openai/two"]);
  });

  it("waits two seconds for its upstream, then answers without it", async () => {
    const waiting = Promise.withResolvers<AbortSignal>();
    const { test } = await open((signal) => {
      waiting.resolve(signal);
      return new Promise(() => {});
    });
    const listed = names(test);
    const signal = await waiting.promise;
    await test.clock.advance(1_999);
    expect(signal.aborted).toBe(false);
    await test.clock.advance(1);
    expect([await listed, signal.aborted]).toEqual([[], true]);
  });

  it("doesn't ask the upstream on a customer-owned connection, or without the option", async () => {
    const customer = await open(async () => ["one"], { connection: "customer" });
    const { organizationId } = customer.test.key;
    await customer.test.gateway.connections.set({
      organizationId,
      gateway: "gw",
      apiKey: "sk-own",
    });
    expect([await names(customer.test), customer.asked()]).toEqual([[], 0]);
  });
});
