import { AssertionError } from "node:assert";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { describe, expect, it } from "vitest";
import {
  activityOf,
  createTestGateway,
  decisionOf,
  expectBudget,
  expectDenied,
  expectExhausted,
  expectPermitted,
  stepOf,
} from "../index.ts";

const policy = definePolicy({
  rules: [
    permit("default", { gateway: "test" }),
    forbid("no-previews", { model: "*/*/*-preview" }, { reason: "not reviewed yet" }),
  ],
});
const budgets = [
  { id: "two", limit: { requests: 2 }, period: "day" as const },
  { id: "each", limit: { requests: 9 }, period: "day" as const, scope: { each: "key" as const } },
];
const open = () => createTestGateway({ policy, budgets });
const preview = "test/acme/mini-preview";

/** The message of an assertion that must fail. */
async function messageOf(assertion: Promise<unknown>): Promise<string> {
  const thrown = await assertion.catch((error: unknown) => error);
  if (thrown instanceof AssertionError) return thrown.message;
  throw new Error("no AssertionError", { cause: thrown });
}

describe("expectDenied and expectPermitted", () => {
  it("accept an outcome and return its decision", async () => {
    const { gateway, chat } = await open();
    const denied = await gateway.fetch(chat({ model: preview }));
    const decision = await expectDenied(gateway, denied, {
      rule: "no-previews",
      reason: "not reviewed yet",
    });
    expect(decision).toMatchObject({ effect: "deny", facts: { model: "mini-preview" } });
    const permitted = await gateway.fetch(chat());
    expect(await expectPermitted(gateway, permitted, { rule: "default" })).toMatchObject({
      effect: "permit",
    });
    expect(await permitted.json()).toMatchObject({ object: "chat.completion" });
  });

  it("report the actual outcome if it differs", async () => {
    const { gateway, chat } = await open();
    const denied = await gateway.fetch(chat({ model: preview }));
    const permitted = await gateway.fetch(chat());
    const invalid = await gateway.fetch(chat({ messages: 7 }));
    expect(await messageOf(expectDenied(gateway, permitted))).toContain("but was answered 200");
    expect(await messageOf(expectDenied(gateway, invalid))).toContain("400 invalid_type");
    expect(await messageOf(expectPermitted(gateway, denied))).toContain("403 policy_denied");
    expect(await messageOf(expectDenied(gateway, denied, { rule: "other" }))).toBe(
      "The decision was determined by no-previews, not by other.",
    );
    expect(await messageOf(expectDenied(gateway, denied, { reason: "other" }))).toContain(
      "not reviewed yet",
    );
  });
});

describe("decisionOf, stepOf and activityOf", () => {
  it("find the records of one request among many", async () => {
    const { gateway, chat, provider } = await open();
    await gateway.fetch(chat());
    provider.reply({ text: "Hi", usage: { promptTokens: 7, completionTokens: 3 } });
    const answer = await gateway.fetch(chat({ stream: true }));
    await answer.text();
    const { id } = await decisionOf(gateway, answer);
    expect(await activityOf(gateway, answer)).toMatchObject({ decisionId: id, promptTokens: 7 });
    expect(await stepOf(gateway, answer)).toMatchObject({ decisionId: id, outcome: "completed" });
  });

  it("report the actual value", async () => {
    const { gateway, chat, provider } = await open();
    const denied = await gateway.fetch(chat({ model: preview }));
    expect(await stepOf(gateway, denied)).toBeNull();
    expect(await messageOf(activityOf(gateway, denied))).toContain("opened no Step");
    provider.reply({ text: "Half", finishReason: null });
    const cut = await gateway.fetch(chat());
    expect(await messageOf(activityOf(gateway, cut))).toContain("its Step is failed");
    const stranger = await gateway.fetch(new Request("http://in-process/v1/models"));
    expect(await messageOf(decisionOf(gateway, stranger))).toContain("401 missing_api_key");
  });
});

describe("expectBudget and expectExhausted", () => {
  it("accept the amounts of a budget", async () => {
    const { gateway, chat, key } = await open();
    await expectBudget(gateway, "two", { settled: 0, held: 0, remaining: 2 });
    await gateway.fetch(chat());
    await expectBudget(gateway, "two", { settled: 1, held: 0, remaining: 1 });
    expect(await expectBudget(gateway, "each", { subject: key.id })).toMatchObject({ limit: 9 });
    await gateway.fetch(chat());
    await expectExhausted(await gateway.fetch(chat()), "two");
  });

  it("report the actual amounts", async () => {
    const { gateway, chat, createKey } = await open();
    const answer = await gateway.fetch(chat());
    expect(await messageOf(expectBudget(gateway, "two", { settled: 2, remaining: 0 }))).toBe(
      "The budget two differs: settled is 1, not 2; remaining is 1, not 0.",
    );
    expect(await messageOf(expectExhausted(answer, "two"))).toContain("but it was answered 200");
    const other = await createKey();
    await gateway.fetch(other.chat());
    expect(await messageOf(expectBudget(gateway, "each", {}))).toContain("has several counters");
    const refused = await gateway.fetch(chat());
    expect(await messageOf(expectExhausted(refused, "each"))).toContain("A budget other than each");
  });
});
