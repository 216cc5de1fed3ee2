import type { GatewayEvent } from "@tollgate/core";
import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
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
  // A request without an answer is charged at its estimate, so every attempt costs something.
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
});

it("reports one start and one end of every attempt, with its usage record", async () => {
  const log = eventLog();
  const policy = definePolicy({
    version: "1",
    rules: [permit("all", {}, { fallbacks: ["other/tollgate/scripted"] })],
  });
  const test = await createTestGateway({ observers: log.observers, policy, gateways: ["other"] });
  const { gateway, provider, chat, clock, key } = test;
  for (let attempt = 0; attempt < 3; attempt++) provider.fail(down());
  const answering = gateway.fetch(chat({}, { traceparent })).then((answer) => answer.text());
  await clock.until(answering);
  const client = new AbortController();
  const held = provider.hold();
  const left = gateway.fetch(chat({ stream: true }), { signal: client.signal });
  await held.reached();
  client.abort(new Error("gone"));
  await left.catch(() => {});
  await log.seeing("step.settled", 2);
  const { data: steps } = await gateway.steps.list({ organizationId: key.organizationId });
  const recorded = [...steps].reverse().flatMap(({ id, attempts }) =>
    attempts.map(({ number, outcome, reason, totalTokens, costNanoUsd, host, durationMs }) => ({
      stepId: id,
      attempt: number,
      outcome,
      reason,
      usage: expect.objectContaining({ totalTokens }),
      costNanoUsd,
      host,
      durationMs,
    })),
  );
  expect(recorded.map(({ outcome }) => outcome)).toEqual([
    "failed",
    "failed",
    "failed",
    "completed",
    "cancelled",
  ]);
  const places = recorded.map(({ stepId, attempt }) => ({ stepId, attempt }));
  const ended = log.seen.filter((event) => event.type === "attempt.ended");
  expect(log.seen.filter(({ type }) => type === "attempt.started")).toMatchObject(places);
  expect(ended).toMatchObject(recorded);
  expect(ended.slice(0, 4).map(({ model }) => model)).toEqual([
    ...Array(3).fill("test/tollgate/scripted"),
    "other/tollgate/scripted",
  ]);
});

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

it("names its request in every event of a request, from its arrival to its answer", async () => {
  const log = eventLog();
  const { gateway, chat, key } = await createTestGateway({ observers: log.observers });
  const answer = await gateway.fetch(chat({}, { traceparent }));
  await answer.text();
  const requestId = answer.headers.get("x-request-id");
  const organizationId = key.organizationId;
  expect(log.seen.filter((event) => "requestId" in event)).toMatchObject([
    { type: "request.received", requestId, traceparent },
    { type: "step.opened", requestId, keyId: key.id, endpoint: "chat_completions", stream: false },
    { type: "attempt.started", requestId, organizationId },
    { type: "attempt.ended", requestId, outcome: "completed" },
    { type: "step.settled", requestId, attempts: 1, finishReason: "stop", writeMs: 0 },
    { type: "request.answered", requestId, status: 200, code: null, endpoint: "chatCompletions" },
  ]);
});

it("reports the end of a request whose client left before its answer", async () => {
  const log = eventLog();
  const { gateway, provider, chat } = await createTestGateway({ observers: log.observers });
  const client = new AbortController();
  const held = provider.hold();
  const asked = gateway.fetch(chat(), { signal: client.signal });
  await held.reached();
  client.abort(new Error("gone"));
  await expect(asked).rejects.toThrow("gone");
  expect(log.seen.filter(({ type }) => type === "request.answered")).toMatchObject([
    { status: 499, code: "client_closed", endpoint: "chatCompletions" },
  ]);
});

it.each([
  ["of version ff", traceparent.replace("00-", "ff-")],
  ["without a trace id", `00-${"0".repeat(32)}-00f067aa0ba902b7-01`],
  ["with more than a trace parent", `${traceparent}-1`],
  ["in capitals", traceparent.toUpperCase()],
])("reports no traceparent %s", async (_, sent) => {
  const log = eventLog();
  const { gateway, chat } = await createTestGateway({ observers: log.observers });
  await gateway.fetch(chat({}, { traceparent: sent }));
  const received = log.seen.find(({ type }) => type === "request.received");
  expect(received).toMatchObject({ type: "request.received", traceparent: null });
});

it("reports an attempt that fails in mid-stream, and why its Step failed", async () => {
  const log = eventLog();
  const { gateway, provider, chat } = await createTestGateway({ observers: log.observers });
  provider.reply({
    text: ["one ", "two "],
    failure: { error: down({ reason: "cut", delivery: "unknown" }), afterEvents: 2 },
  });
  await gateway.fetch(chat({ stream: true })).then((answer) => answer.text());
  expect(log.seen.slice(-3)).toMatchObject([
    { type: "attempt.ended", attempt: 1, outcome: "failed", reason: "cut" },
    { type: "step.settled", outcome: "failed", reason: "cut" },
    { type: "answer.failed", code: "upstream_error", status: 502 },
  ]);
});

describe("requests that fail", () => {
  const failed = (seen: readonly GatewayEvent[], type: "answer.failed" | "request.refused") =>
    seen.filter((event) => event.type === type);

  it("before a decision are each reported once, with the caller if known", async () => {
    const log = eventLog();
    const { gateway, chat, key } = await createTestGateway({ observers: log.observers });
    const anonymous = chat({}, { authorization: "" });
    const refused = [
      [anonymous, { code: "missing_api_key", status: 401, endpoint: "chatCompletions" }, null],
      [chat({ model: "x" }), { code: "model_not_found", status: 404, param: "model" }, key],
      [
        chat({ ["x".repeat(999)]: 1 }),
        { code: "unknown_parameter", status: 400, param: `${"x".repeat(64)}…` },
        key,
      ],
      [new Request("http://test/v1/nothing"), { code: "not_found", endpoint: null }, null],
    ] as const;
    for (const [request, event, caller] of refused) {
      const before = log.seen.length;
      const answer = await gateway.fetch(request);
      const requestId = answer.headers.get("x-request-id");
      const organizationId = caller?.organizationId ?? null;
      const keyId = caller?.id ?? null;
      expect(log.seen.slice(before)).toMatchObject([
        { type: "request.received", requestId },
        { type: "request.refused", ...event, requestId, organizationId, keyId },
        { type: "answer.failed", code: event.code, requestId, decisionId: null, stepId: null },
        { type: "request.answered", code: event.code, requestId, organizationId, keyId },
      ]);
    }
  });

  it("are reported with their decision and their Step if they have one", async () => {
    const log = eventLog();
    const policy = definePolicy({
      version: "1",
      rules: [permit("all", { model: "test/tollgate/*" })],
    });
    const test = await createTestGateway({ observers: log.observers, policy });
    const { gateway, provider, chat, key } = test;
    const denied = await gateway.fetch(chat({ model: "test/a/other" }));
    const decisionId = denied.headers.get("x-service-policy-decision-id");
    provider.fail(down({ status: 400 }));
    await gateway.fetch(chat());
    provider.reply({
      text: ["one ", "two "],
      failure: { error: down({ reason: "cut", delivery: "unknown" }), afterEvents: 2 },
    });
    await gateway.fetch(chat({ stream: true })).then((answer) => answer.text());
    await gateway.fetch(chat()).then((answer) => answer.text());
    const { data: steps } = await gateway.steps.list({ organizationId: key.organizationId });
    const [cut, down_] = steps.filter(({ outcome }) => outcome === "failed");
    expect(failed(log.seen, "request.refused")).toEqual([]);
    expect(failed(log.seen, "answer.failed")).toMatchObject([
      { code: "policy_denied", status: 403, decisionId, stepId: null, keyId: key.id },
      { decisionId: down_?.decisionId, stepId: down_?.id },
      { code: "upstream_error", decisionId: cut?.decisionId, stepId: cut?.id },
    ]);
  });

  it("are reported to added observers until these are removed", async () => {
    const { gateway, chat } = await createTestGateway();
    const seen: GatewayEvent[] = [];
    const remove = gateway.observe((event) => {
      seen.push(event);
      throw new Error("an observer's own");
    });
    expect((await gateway.fetch(chat({ model: "x" }))).status).toBe(404);
    expect(seen).toHaveLength(4);
    remove();
    await gateway.fetch(chat({ model: "x" }));
    expect(seen).toHaveLength(4);
  });

  it("don't end the process if an observer rejects later", async () => {
    const { gateway, chat } = await createTestGateway();
    let failed = 0;
    gateway.observe(async () => {
      failed++;
      throw new Error("an observer's own");
    });
    expect((await gateway.fetch(chat({ model: "x" }))).status).toBe(404);
    // An unhandled rejection would end the process, and this test run.
    await new Promise((resolve) => setImmediate(resolve));
    expect(failed).toBe(4);
  });
});

it("gives each attempt the trace context of the host, and none if that is invalid", async () => {
  const asked: unknown[] = [];
  const given: unknown[] = [traceparent, `${traceparent}\r\nx-injected: 1`, null];
  const { gateway, provider, chat, clock } = await createTestGateway({
    traceparent(attempt) {
      asked.push(attempt);
      const next = given.shift();
      if (next === undefined) throw new Error("no more");
      return typeof next === "string" ? next : null;
    },
    retries: { max: 3 },
  });
  for (let attempt = 0; attempt < 3; attempt++) provider.fail(down());
  const answer = await clock.until(gateway.fetch(chat()));
  expect(answer.status).toBe(200);
  expect(provider.calls.map((call) => call.traceparent)).toEqual([traceparent, null, null, null]);
  const requestId = answer.headers.get("x-request-id");
  const attempts = [1, 2, 3, 4].map((attempt) => ({ requestId, attempt }));
  expect(asked).toMatchObject(attempts);
});

it("gives no trace context if the host's function is async by mistake", async () => {
  // An unhandled rejection would end the process, and this test run.
  const { gateway, provider, chat } = await createTestGateway({
    traceparent: (): null => Object(Promise.reject(new Error("a host's own"))),
  });
  expect((await gateway.fetch(chat())).status).toBe(200);
  expect(provider.calls).toMatchObject([{ traceparent: null }]);
});

it("reports administrative changes with their subject and actor, and nothing that did not change", async () => {
  const log = eventLog();
  const { gateway, chat, key } = await createTestGateway({ observers: log.observers });
  await (await gateway.fetch(chat())).text();
  const [organizationId, actor] = [key.organizationId, "ada"];
  const budget = { id: "team", limit: { usd: 1 }, period: "day" } as const;
  await gateway.budgets.create({ ...budget, scope: { organization: organizationId }, actor });
  await expect(gateway.budgets.create(budget)).rejects.toThrow();
  await gateway.keys.update({ organizationId, id: key.id, label: "renamed", actor });
  const [step] = (await gateway.steps.list({ organizationId })).data;
  const id = step?.id ?? "";
  await gateway.steps.correct({ organizationId, id, costNanoUsd: 1, reason: "invoice", actor });
  await gateway.keys.revoke({ organizationId, userId: key.userId, actor });
  await gateway.keys.revoke({ organizationId, userId: key.userId, actor });
  await gateway.as({ organizationId, userId: "eve", label: "app" }).fetch(chat());
  const events = log.seen.flatMap((event) => (event.type === "administered" ? [event] : []));
  const { data } = await gateway.changes.list({ organizationId });
  expect(events).toMatchObject([
    { kind: "policy.changed", organizationId: null, actor: null },
    { kind: "key.created", subject: key.id, organizationId, actor: null },
    { kind: "budget.created", subject: "team", organizationId, actor },
    { kind: "key.updated", subject: key.id, organizationId, actor },
    { kind: "correction", subject: id, organizationId, actor },
    { kind: "key.revoked", subject: key.id, organizationId, actor },
    { kind: "key.created", organizationId, actor: null },
  ]);
  expect(events.slice(1).map(({ kind, subject }) => ({ kind, subject }))).toEqual(
    [...data].reverse().map(({ kind, subject }) => ({ kind, subject })),
  );
});

it("reports what maintenance did, its failure, and that it works again", async () => {
  const log = eventLog();
  const store = memoryStore();
  let fails = false;
  const test = await createTestGateway({
    observers: log.observers,
    retention: { activity: "30s" },
    store: {
      ...store,
      async renewLease(renewal) {
        if (fails) throw new Error("the disk is gone");
        await store.renewLease(renewal);
      },
    },
  });
  const { gateway, chat, clock } = test;
  await (await gateway.fetch(chat())).text();
  fails = true;
  await clock.advance("5s");
  fails = false;
  await clock.advance("56s");
  const ofLease = log.seen.filter((event) => "what" in event && event.what === "lease");
  expect(ofLease.map(({ type }) => type)).toEqual(["gateway.degraded", "gateway.restored"]);
  const ran = log.seen.flatMap((event) => (event.type === "maintenance.ran" ? [event] : []));
  expect(ran).toContainEqual(expect.objectContaining({ what: "recovery", count: 0 }));
  expect(ran).toContainEqual(expect.objectContaining({ what: "sweep", count: 1, durationMs: 0 }));
  await gateway.sweep();
  expect(log.seen.at(-1)).toMatchObject({ type: "maintenance.ran", what: "sweep", count: 0 });
});
