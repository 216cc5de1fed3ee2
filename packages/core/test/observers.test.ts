import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway } from "@tollgate/testing";
import { expect, it } from "vitest";
import { eventLog } from "./event-log.ts";

const down = (details = {}) =>
  new ProviderError("Down.", {
    reason: "down",
    delivery: "answered",
    status: 500,
    ...details,
  });

it("reports the sums of a Step over its retries and fallbacks, as `steps.get` gives them", async () => {
  const log = eventLog();
  const policy = definePolicy({
    version: "1",
    rules: [permit("all", {}, { fallbacks: ["other/tollgate/scripted"] })],
  });
  const test = await createTestGateway({
    observers: log.observers,
    policy,
    gateways: ["other"],
    retries: { allowDuplicates: true },
  });
  const { gateway, provider, chat, clock, key } = test;
  // What is sent and not answered is charged at its estimate, so that every attempt costs something.
  for (let attempt = 0; attempt < 3; attempt++) provider.fail(down({ delivery: "unknown" }));
  await clock.until(gateway.fetch(chat({ max_tokens: 30 })).then((answer) => answer.text()));
  const [settled] = log.seen.filter((event) => event.type === "step.settled");
  const { data } = await gateway.steps.list({ organizationId: key.organizationId });
  const [step] = data;
  expect(step?.attempts.length).toBeGreaterThan(1);
  expect(step?.totalTokens).toBeGreaterThan(step?.attempts.at(-1)?.totalTokens ?? 0);
  expect(settled).toMatchObject({
    outcome: step?.outcome,
    reason: step?.reason,
    totalTokens: step?.totalTokens,
    costNanoUsd: step?.costNanoUsd,
  });
  const failed = log.seen.filter((event) => event.type === "attempt.failed");
  expect(failed.map(({ attempt }) => attempt)).toEqual(
    step?.attempts.filter(({ outcome }) => outcome === "failed").map(({ number }) => number),
  );
});

it("reports an attempt that fails in mid-stream, and why its Step failed", async () => {
  const log = eventLog();
  const { gateway, provider, chat } = await createTestGateway({ observers: log.observers });
  provider.reply({
    text: ["one ", "two "],
    failure: { error: down({ reason: "cut", delivery: "unknown" }), afterEvents: 2 },
  });
  await gateway.fetch(chat({ stream: true })).then((answer) => answer.text());
  expect(log.seen.slice(-2)).toMatchObject([
    { type: "attempt.failed", attempt: 1, reason: "cut" },
    { type: "step.settled", outcome: "failed", reason: "cut" },
  ]);
});
