import { GatewayError, virtual } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { createTestGateway, type TestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { openOwnGateways } from "./own-gateways.ts";
import { stores } from "./stores.ts";
import { completionOf, failureOf } from "./wire.ts";
import { written } from "./written.ts";

const prices = { "one/a/x": { input: 1, output: 1 }, "two/b/y": { input: 2, output: 2 } };
const best = virtual({ fast: ["one/a/x", "two/b/y"] });

/** Two gateways of one model each and a virtual gateway, with the aliases of the gateway and those of the key. */
function open(
  aliases: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>> | null = null,
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const providers = { best };
  const gateways = ["one", "two"];
  const key = { ...options.key, ...(own && { aliases: own }) };
  return createTestGateway({ gateways, providers, prices, aliases, ...options, key });
}

/** The model that answered a name; null if none did. */
async function served({ gateway, chat }: Pick<TestGateway, "gateway" | "chat">, model: string) {
  const answer = await gateway.fetch(chat({ model }));
  await answer.text();
  return answer.headers.get("x-service-model");
}

async function decisions({ gateway, key: { organizationId } }: TestGateway) {
  return (await gateway.decisions.list({ organizationId })).data.toReversed();
}

async function listed({ gateway }: TestGateway, secret: string) {
  const headers = { authorization: `Bearer ${secret}` };
  const answer = await gateway.fetch("http://in-process/v1/models", { headers });
  const model = z.object({ id: z.string(), owned_by: z.string() });
  const { data } = z.object({ data: z.array(model) }).parse(await answer.json());
  return data.map(({ id, owned_by }) => `${id} of ${owned_by}`);
}

async function errorOf(making: () => Promise<unknown>): Promise<GatewayError> {
  const thrown: unknown = await making().catch((error: unknown) => error);
  if (thrown instanceof GatewayError) return thrown;
  throw new TypeError("nothing was refused");
}

describe("an alias of a model", () => {
  it.each(stores)(
    "is decided, priced, held and recorded under the model's id: %s",
    async (_, openStore) => {
      const test = await open({ "gpt-5": "one/a/x" }, null, {
        store: openStore(),
        policy: definePolicy({ rules: [permit("one", { model: "one/a/x" })] }),
        budgets: [{ id: "one", scope: { model: "one/a/x" }, limit: { usd: 1 }, period: "day" }],
      });
      const answer = await test.gateway.fetch(test.chat({ model: "gpt-5" }));
      expect(answer.headers.get("x-service-model")).toBe("one/a/x");
      expect((await completionOf(answer.clone())).model).toBe("gpt-5");
      const { organizationId } = test.key;
      const [step] = (await test.gateway.steps.list({ organizationId })).data;
      expect(step).toMatchObject({
        requestedModel: "gpt-5",
        model: "one/a/x",
        costNanoUsd: 15_000,
      });
      expect((await test.gateway.budgets.status({ id: "one" })).data).toMatchObject([
        { settled: 15_000, held: 0 },
      ]);
      const [decision] = await decisions(test);
      expect(decision).toMatchObject({
        id: step?.decisionId,
        facts: { gateway: "one", vendor: "a", model: "x" },
        choice: {
          requested: "gpt-5",
          virtual: null,
          by: "alias",
          latencyMs: null,
          passedOver: [],
        },
      });
      const id = decision?.id ?? "";
      expect(await test.gateway.decisions.get({ organizationId, id })).toEqual(decision);
    },
  );

  it.each(stores)(
    "belongs to a key or to the gateway, and the key's comes first: %s",
    async (_, openStore) => {
      const test = await open(
        { small: "one/a/x", large: "one/a/x" },
        { small: "two/b/y" },
        {
          store: openStore(),
        },
      );
      expect(test.key.aliases).toEqual({ small: "two/b/y" });
      expect(await served(test, "small")).toBe("two/b/y");
      expect(await served(test, "large")).toBe("one/a/x");
      const other = await test.createKey({ aliases: null });
      expect(await served({ ...test, ...other }, "small")).toBe("one/a/x");
    },
  );

  it("changes with its key from the next request on, in every process", async () => {
    const test = await open({});
    const { id, organizationId } = test.key;
    const another = await createTestGateway({ gateways: ["one"], store: test.store });
    const update = (aliases: Readonly<Record<string, string>> | null) =>
      another.gateway.keys.update({ organizationId, id, aliases, actor: "admin" });
    expect(await served(test, "gpt-5")).toBeNull();
    await update({ "gpt-5": "one/a/x" });
    await test.clock.advance("5s");
    expect(await served(test, "gpt-5")).toBe("one/a/x");
    await update({ "gpt-5": "one/a/z" });
    expect(await served(test, "gpt-5")).toBe("one/a/z");
    expect((await update({})).aliases).toBeNull();
    expect(await served(test, "gpt-5")).toBeNull();
    const { data } = await test.gateway.changes.list({ organizationId, kind: "key.updated" });
    expect(data.map(({ actor, facts }) => [actor, facts["aliases"]])).toEqual([
      ["admin", null],
      ["admin", { "gpt-5": "one/a/z" }],
      ["admin", { "gpt-5": "one/a/x" }],
    ]);
  });

  it("leads to a virtual model, which chooses its target and says by which name it was called", async () => {
    const policy = definePolicy({ rules: [permit("all"), forbid("no-one", { gateway: "one" })] });
    const test = await open({}, { fast: "best/any/fast" }, { policy });
    expect(await served(test, "fast")).toBe("two/b/y");
    const [denied, permitted] = await decisions(test);
    const requested = { requested: "fast", virtual: "best/any/fast", by: "order" };
    expect(denied).toMatchObject({ effect: "deny", choice: { ...requested, passedOver: [] } });
    expect(permitted?.choice).toMatchObject({
      ...requested,
      passedOver: [{ model: "one/a/x", reason: "policy", decisionId: denied?.id }],
    });
  });

  it("opens no way around the policy or the allowlist of its key", async () => {
    const policy = definePolicy({ rules: [permit("all"), forbid("no-two", { model: "two/*/*" })] });
    const own = { cheap: "two/b/y", "one/a": "two/b/y" };
    const test = await open({ gpt: "one/a/x" }, own, { policy, key: { models: ["two/*/*"] } });
    for (const name of ["cheap", "one/a", "gpt"]) {
      const answer = await test.gateway.fetch(test.chat({ model: name }));
      expect([answer.status, (await failureOf(answer)).code], name).toEqual([403, "policy_denied"]);
    }
    const rules = (await decisions(test)).map(({ rules, choice }) => [rules[0], choice?.requested]);
    expect(rules).toEqual([
      ["no-two", "cheap"],
      ["no-two", "one/a"],
      ["key-models", "gpt"],
    ]);
  });

  it("is matched exactly, not in another case, encoding or look-alike", async () => {
    const test = await open({ "gpt-5": "one/a/x", constructor: "one/a/x" }, { fast: "two/b/y" });
    const others = ["GPT-5", " gpt-5", "gpt-5 ", "gpt%2D5", "gpt-5\u0000", "gpt\u20115", "ｇpt-5"];
    for (const other of [...others, "fast/", "/fast", "toString", "__proto__"])
      expect(await served(test, other), other).toBeNull();
    expect((await written(test.gateway)).decisions).toBe(0);
    expect(await served(test, "constructor")).toBe("one/a/x");
  });

  it("that leads nowhere any more is an unknown model, whatever the gateway's alias is", async () => {
    const test = await open({ fast: "one/a/x" }, { fast: "two/b/y" });
    const aliases = { fast: "one/a/x" };
    const without = await createTestGateway({ gateways: ["one"], store: test.store, aliases });
    const answer = await without.gateway.fetch(test.chat({ model: "fast" }));
    expect(answer.status).toBe(404);
    expect(await failureOf(answer)).toMatchObject({
      code: "model_not_found",
      param: "model",
      message:
        "The alias fast leads to two/b/y, which no gateway has. Ask an administrator to change it.",
    });
  });

  it("needs the organization's own account where its gateway does", async () => {
    const test = await openOwnGateways({ aliases: { mine: "own/a/b" } });
    const answer = await test.gateway.fetch(test.chat({ model: "mine" }));
    expect([answer.status, (await failureOf(answer)).code]).toEqual([400, "connection_required"]);
    const { organizationId } = test.key;
    await test.gateway.connections.set({ organizationId, gateway: "own", apiKey: "secret" });
    expect(await served(test, "mine")).toBe("own/a/b");
  });

  it("is listed to the keys that can call its model", async () => {
    const aliases = { "gpt-5": "one/a/x", "acme/fast": "best/any/fast", mine: "two/b/y" };
    const test = await open(aliases, { mine: "one/a/x", extra: "one/a/x" });
    const { key } = await test.createKey({ models: ["two/*/*"], aliases: null });
    const names = async (secret: string) =>
      (await listed(test, secret)).filter((line) => !/^\S+\/\S+\/\S+ /.test(line));
    expect(await names(test.key.secret)).toEqual([
      "gpt-5 of a",
      "acme/fast of any",
      "mine of a",
      "extra of a",
    ]);
    expect(await names(key.secret)).toEqual(["acme/fast of any", "mine of b"]);
    const headers = { authorization: `Bearer ${key.secret}` };
    const one = async (id: string) => {
      const answer = await test.gateway.fetch(`http://in-process/v1/models/${id}`, { headers });
      return answer.status === 200 ? answer.json() : answer.status;
    };
    expect(await one("mine")).toMatchObject({ id: "mine", object: "model", owned_by: "b" });
    expect(await one("acme%2Ffast")).toMatchObject({ id: "acme/fast" });
    expect([await one("gpt-5"), await one("extra"), await one("%E0%A4%A")]).toEqual([
      404, 404, 404,
    ]);
  });

  it("names the model of a response, too", async () => {
    const test = await open({ "gpt-5": "one/a/x" });
    const { headers } = test.chat({ model: "gpt-5" });
    const body = JSON.stringify({ model: "gpt-5", input: "Hi" });
    const url = "http://in-process/v1/responses";
    const answer = await test.gateway.fetch(url, { method: "POST", headers, body });
    expect(answer.headers.get("x-service-model")).toBe("one/a/x");
    expect(await answer.json()).toMatchObject({ model: "gpt-5" });
  });
});

describe("a mistake in aliases", () => {
  const names = "must be 1 to 128 letters, digits and . _ : @ -, with at most one slash";
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`a${at}`, "one/a/x"]));
  it.each<[string, string, Readonly<Record<string, string>>]>([
    ['aliases["a/b/c"]', names, { "a/b/c": "one/a/x" }],
    ['aliases["gpt 5"]', names, { "gpt 5": "one/a/x" }],
    ['aliases["ｇpt"]', names, { ｇpt: "one/a/x" }],
    [`aliases["${"a".repeat(64)}"]`, names, { ["a".repeat(129)]: "one/a/x" }],
    ["aliases.a", "must be <gateway>/<vendor>/<model>", { a: "b", b: "one/a/x" }],
    ["aliases.a", "must be <gateway>/<vendor>/<model>", { a: "one/a/*" }],
    ["aliases.a", "leads to three/a/x, which no gateway has", { a: "three/a/x" }],
    ["aliases.a", "leads to best/any/slow, which no gateway has", { a: "best/any/slow" }],
    ["aliases", "must have at most 100 members", many],
  ])("is refused at %s: it %s", async (path, rule, aliases) => {
    const refused = { param: path, message: `\`${path}\` ${rule}.` };
    expect(await errorOf(() => open(aliases))).toMatchObject({
      ...refused,
      code: "invalid_configuration",
    });
    const test = await open({});
    const { organizationId, id } = test.key;
    const changes = [
      () => test.gateway.keys.update({ organizationId, id, aliases }),
      () => test.gateway.keys.create({ organizationId, userId: "ada", label: "a", aliases }),
    ];
    for (const change of changes)
      expect(await errorOf(change)).toMatchObject({ ...refused, code: "invalid_argument" });
    expect((await test.gateway.keys.get({ organizationId, id })).aliases).toBeNull();
  });
});
