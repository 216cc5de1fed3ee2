import { deepEqual, equal } from "node:assert/strict";
import { ProviderError } from "@tollgate/core/provider";
import {
  activityOf,
  createTestGateway,
  expectBudget,
  expectDenied,
  expectExhausted,
  expectPermitted,
  stepOf,
} from "@tollgate/testing";
import { budgets, models, policy } from "../src/policy.ts";

/** The two functions that every test runner has. */
export interface Runner {
  describe(name: string, register: () => void): unknown;
  it(name: string, run: () => Promise<void>): unknown;
}

const outside = "openrouter/openai/gpt-5";
const inHouse = "house/meta/llama-4";
const confidential = { "x-service-data-sensitivity": "D2_CONFIDENTIAL" };
const restricted = { "x-service-data-sensitivity": "D3_RESTRICTED" };
const tools = [{ type: "function", function: { name: "search" } }];
const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
const picture = [{ role: "user", content: [{ type: "text", text: "What is this?" }, image] }];

/** A new gateway with Acme's rules and a key for Ada. */
const open = () =>
  createTestGateway({ policy, budgets, models, key: { organizationId: "acme", userId: "ada" } });

/** Registers a test of every rule and every budget with the given runner. */
export function describePolicy({ describe, it }: Runner): void {
  describe("the models", () => {
    it("answer internal calls, outside and in house", async () => {
      const { gateway, chat } = await open();
      for (const model of [outside, inHouse])
        await expectPermitted(gateway, await gateway.fetch(chat({ model })), {
          rule: "internal-work",
        });
    });

    it("can't be previews of any vendor", async () => {
      const { gateway, chat, provider } = await open();
      const answer = await gateway.fetch(chat({ model: "house/meta/llama-5-preview" }));
      await expectDenied(gateway, answer, {
        rule: "no-previews",
        reason: "previews are not reviewed yet",
      });
      deepEqual(provider.calls, []);
    });

    it("reject a key that is limited to others", async () => {
      const { gateway, createKey } = await open();
      const { chat } = await createKey({ models: ["house/*/*"] });
      await expectDenied(gateway, await gateway.fetch(chat({ model: outside })), {
        rule: "key-models",
      });
      await expectPermitted(gateway, await gateway.fetch(chat({ model: inHouse })));
    });
  });

  describe("confidential data", () => {
    it("stays in house", async () => {
      const { gateway, chat, provider } = await open();
      await expectDenied(gateway, await gateway.fetch(chat({ model: outside }, confidential)));
      deepEqual(provider.calls, []);
      const answer = await gateway.fetch(chat({ model: inHouse }, confidential));
      await expectPermitted(gateway, answer, { rule: "confidential-in-house" });
    });

    it("gets short answers and leaves only digests in the transcript", async () => {
      const { gateway, chat, provider } = await open();
      const answer = await gateway.fetch(chat({ model: inHouse, max_tokens: 4_000 }, confidential));
      const { obligations } = await expectPermitted(gateway, answer);
      deepEqual(obligations, { maxOutputTokens: 500, transcript: "digest" });
      equal(provider.calls[0]?.request.maxOutputTokens, 500);
    });

    it("can't be sent at all if it is restricted", async () => {
      const { gateway, chat } = await open();
      await expectDenied(gateway, await gateway.fetch(chat({ model: inHouse }, restricted)));
    });
  });

  describe("images", () => {
    it("stay in house", async () => {
      const { gateway, chat } = await open();
      const sent = await gateway.fetch(chat({ model: outside, messages: picture }));
      await expectDenied(gateway, sent, { rule: "no-images-outside" });
      await expectPermitted(
        gateway,
        await gateway.fetch(chat({ model: inHouse, messages: picture })),
      );
    });
  });

  describe("tools", () => {
    it("work for everyone except interns", async () => {
      const { gateway, chat, createKey } = await open();
      await expectPermitted(gateway, await gateway.fetch(chat({ model: inHouse, tools })));
      const intern = await createKey({ userId: "intern-1" });
      const asked = await gateway.fetch(intern.chat({ model: inHouse, tools }));
      await expectDenied(gateway, asked, { rule: "interns-have-no-tools" });
      await expectPermitted(gateway, await gateway.fetch(intern.chat({ model: inHouse })));
    });
  });

  describe("a vendor that is down", () => {
    const down = new ProviderError("The provider answered with status 404.", {
      reason: "status_404",
      delivery: "answered",
      status: 404,
    });

    it("is replaced by the in-house model, at its price", async () => {
      const { gateway, chat, provider } = await open();
      provider.fail(down);
      const answer = await gateway.fetch(chat({ model: outside }));
      equal(answer.status, 200);
      const { model, costNanoUsd } = await activityOf(gateway, answer);
      deepEqual([model, costNanoUsd], [inHouse, 10 * 200 + 5 * 600]);
      const step = await stepOf(gateway, answer);
      deepEqual(
        step?.attempts.map((attempt) => attempt.model),
        [outside, inHouse],
      );
    });
  });

  describe("the budgets", () => {
    it("allow a key four requests an hour", async () => {
      const { gateway, chat, clock, key } = await open();
      const ask = () => gateway.fetch(chat({ model: inHouse }));
      for (let request = 0; request < 4; request++) await expectPermitted(gateway, await ask());
      await expectExhausted(await ask(), "key-hour");
      await expectBudget(gateway, "key-hour", { settled: 4, remaining: 0, subject: key.id });
      await clock.advance("1h");
      await expectPermitted(gateway, await ask());
    });

    it("allow no more requests in parallel", async () => {
      const { gateway, chat } = await open();
      const asked = Array.from({ length: 10 }, () => gateway.fetch(chat({ model: inHouse })));
      const statuses = (await Promise.all(asked)).map(({ status }) => status);
      equal(statuses.filter((status) => status === 200).length, 4);
    });

    it("charge the cost of each answer to the nanodollar, and release the rest of its hold", async () => {
      const { gateway, chat, provider } = await open();
      provider.reply({ text: "Hi", usage: { promptTokens: 1_000, completionTokens: 100 } });
      await gateway.fetch(chat({ model: outside }));
      const cost = 1_000 * 1_250 + 100 * 10_000;
      await expectBudget(gateway, "acme-month", { settled: cost, held: 0 });
    });

    it("reject calls that could cost more than the rest of the month's budget", async () => {
      const { gateway, chat, provider } = await open();
      provider.reply({ text: "Hi", usage: { promptTokens: 0, completionTokens: 200_000 } });
      await gateway.fetch(chat({ model: outside }));
      const answer = await gateway.fetch(chat({ model: outside, max_tokens: 128_000 }));
      await expectExhausted(answer, "acme-month");
      await expectBudget(gateway, "acme-month", { settled: 2_000_000_000, held: 0 });
      equal(provider.calls.length, 1);
    });
  });
}
