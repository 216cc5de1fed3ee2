import type { Gateway, GatewayOptions } from "@tollgate/core";
import { definePolicy } from "@tollgate/core/policy";
import { expect, it } from "vitest";
import { organization, type Product, type ProductOptions } from "../src/product.ts";
import { readAnswer, readStream } from "../src/read-answer.ts";
import {
  chunked,
  done,
  finish,
  goodAnswer,
  lastChunk,
  streamHead,
  text,
  usage,
} from "../src/upstream-bytes.ts";
import { codeOf, good, startProduct } from "./fixture.ts";

interface MidStreamOptions extends ProductOptions {
  readonly before?: (gateway: Gateway) => Promise<unknown>;
}

/** A product whose first stream waits in its middle, and the function that lets it continue to its end. */
async function inMidStream({ before, ...options }: MidStreamOptions = {}) {
  const goes = Promise.withResolvers<void>();
  const product = await startProduct(async ({ send, body }, number) => {
    if (number > 1) return send(goodAnswer(body));
    await send(streamHead + chunked(text("Half of it")));
    await goes.promise;
    await send(chunked(finish + usage(1_000, 500) + done) + lastChunk);
  }, options);
  await before?.(product.gateway);
  const client = await product.post({ stream: true, max_tokens: 600 });
  await client.until("Half of it");
  const finished = async () => {
    goes.resolve();
    return readStream(readAnswer(await client.ended()));
  };
  return { product, finished };
}

const whole = { finishReason: "stop", error: null, done: true };

async function keyOf({ gateway }: Product) {
  const { data } = await gateway.keys.list({ organizationId: organization });
  return { organizationId: organization, id: data[0]?.id ?? "" };
}

async function expectRefused(product: Product, status: number, code: string): Promise<void> {
  const sent = product.upstream.requests.length;
  for (const stream of [true, false]) {
    const refused = await product.ask({ stream });
    expect([refused.status, codeOf(refused)]).toEqual([status, code]);
  }
  expect(product.upstream.requests).toHaveLength(sent);
}

it("F46 a stream finishes although its key is revoked, the next request is refused, and both are recorded", async () => {
  const { product, finished } = await inMidStream();
  await product.gateway.keys.revoke(await keyOf(product));
  await expectRefused(product, 401, "invalid_api_key");
  expect(await finished()).toMatchObject(whole);
  expect(await product.steps()).toMatchObject([{ outcome: "completed" }]);
  const paging = { cursor: null, limit: 100 };
  const { data } = await product.store.evidence.list({ organizationId: organization }, paging);
  const kinds = data.map(({ kind }) => kind).filter((kind) => /^(?:step|key)\./.test(kind));
  expect(kinds).toEqual(["key.created", "step.opened", "key.revoked", "step.settled"]);
  expect(await product.problems()).toEqual([]);
});

it("F46 a stream finishes although its key expires, and the next request is refused", async () => {
  const { product, finished } = await inMidStream();
  const expiresAt = new Date(product.clock.now() + 5_000).toISOString();
  await product.gateway.keys.update({ ...(await keyOf(product)), expiresAt });
  expect((await product.ask()).status).toBe(200);
  product.clock.push(5_000);
  await expectRefused(product, 401, "invalid_api_key");
  expect(await finished()).toMatchObject(whole);
  expect(await product.problems()).toEqual([]);
});

it("F51 a process whose heap is nearly full refuses requests, and finishes those it answers", async () => {
  let heap = 0;
  const load = { loopDelay: () => 0, heapShare: () => heap };
  const { product, finished } = await inMidStream({ gateway: { load } });
  heap = 0.97;
  await expectRefused(product, 503, "overloaded");
  expect((await product.ask()).headers).toHaveProperty("retry-after");
  expect(await finished()).toMatchObject(whole);
  heap = 0.5;
  expect((await product.ask()).status).toBe(200);
  expect(await product.problems()).toEqual([]);
});

/** A price book whose price the test can change, and a provider that leaves the price to it. */
function pricedBy(nanoUsdPerToken: () => number) {
  const rates = () => ({ input: nanoUsdPerToken() * 1e6, output: nanoUsdPerToken() * 1e6 });
  const prices: GatewayOptions["prices"] = {
    priceOf: () => ({ ...rates(), source: "custom" }),
    factsOf: () => ({ maxOutputTokens: 1_000, reasons: null }),
  };
  return { gateway: { prices }, provider: { models: { "vendor/model": {} } } };
}

it("F47 a call is settled by the price, the budget and the policy that it was decided by", async () => {
  const now = { price: 1, isPermitted: true };
  const { gateway, provider } = pricedBy(() => now.price);
  const policy = definePolicy({
    version: "1",
    decide: () => ({
      effect: now.isPermitted ? "permit" : "deny",
      rules: [now.isPermitted ? "first" : "second"],
    }),
  });
  const own = { id: "own", scope: { organization }, period: "total" } as const;
  const { product: opened, finished } = await inMidStream({
    gateway: { ...gateway, policy },
    provider,
    before: ({ budgets }) => budgets.create({ ...own, limit: { usd: "0.01" } }),
  });
  now.price = 1_000;
  await opened.gateway.budgets.update({ ...own, limit: { usd: "0.000001" } });
  await expectRefused(opened, 429, "budget_exceeded");
  now.isPermitted = false;
  await expectRefused(opened, 403, "policy_denied");
  expect(await finished()).toMatchObject(whole);
  const [step] = await opened.steps();
  expect(step).toMatchObject({ outcome: "completed" });
  expect(step?.attempts).toMatchObject([
    { price: { input: 1e6 }, end: { costNanoUsd: 1_500, priceSource: "custom" } },
  ]);
  const { data } = await opened.gateway.budgets.status({ id: "own" });
  expect(data).toMatchObject([{ held: 0, settled: 1_500 }]);
  expect(await opened.problems()).toEqual([]);
});

it.each([
  ["a policy", { policy: definePolicy({ version: "1", decide: fail }) }, 403, "policy_denied"],
  ["a price book", { prices: { priceOf: fail, factsOf: fail } }, 403, "price_unknown"],
  ["an authenticator", { authenticate: fail }, 503, "authentication_unavailable"],
] as const)(
  "F53 %s of the host that throws refuses the request, and shows nothing of it",
  async (_, gateway, status, code) => {
    const provider = { models: { "vendor/model": {} } };
    const product = await startProduct(good, { gateway, provider });
    await expectRefused(product, status, code);
    expect((await product.ask()).body).not.toContain("of the host");
    expect(await product.problems()).toEqual([]);
    const { data } = await product.gateway.decisions.list({ organizationId: organization });
    expect(data.length).toBe(status === 503 ? 0 : 3);
  },
);

it("F53 an observer that throws or rejects changes no answer", async () => {
  const product = await startProduct(good);
  let seen = 0;
  product.gateway.observe(() => {
    seen++;
    fail();
  });
  product.gateway.observe(async () => fail());
  for (const stream of [true, false]) expect((await product.ask({ stream })).status).toBe(200);
  expect(seen).toBeGreaterThan(1);
  expect(await product.problems()).toEqual([]);
});

function fail(): never {
  throw new Error("a secret of the host");
}
