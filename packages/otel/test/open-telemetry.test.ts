import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  StackContextManager,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { type BudgetRecord, everyOrganization, type Gateway } from "@tollgate/core";
import { listOf } from "@tollgate/core/administration";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { openTelemetry, type TelemetryOptions } from "../src/index.ts";

afterEach(() => vi.restoreAllMocks());

const flat = { input: "1", output: "1" };
const canary = "canary-e7b1c9";
const remote = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const spare = "spare/tollgate/scripted";
const unavailable = () =>
  new ProviderError("Down.", { reason: "http_503", status: 503, delivery: "answered" });

/** A gateway whose telemetry goes to the SDK's exporters in memory. */
async function observed(
  options: TelemetryOptions = {},
  gatewayOptions: TestGatewayOptions = {},
  watchedOf: (gateway: Gateway) => Pick<Gateway, "status" | "budgets"> = (gateway) => gateway,
) {
  const exporter = new InMemorySpanExporter();
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: metricExporter });
  const telemetry = openTelemetry({
    tracerProvider: new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
    meterProvider: new MeterProvider({ readers: [reader] }),
    ...options,
  });
  const test = await createTestGateway({ ...gatewayOptions, ...telemetry.options });
  telemetry.watch(watchedOf(test.gateway));
  /** The points of every metric, by name. */
  async function points() {
    await reader.forceFlush();
    const collected = metricExporter.getMetrics().at(-1)?.scopeMetrics ?? [];
    return new Map(
      collected.flatMap(({ metrics }) =>
        metrics.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints] as const),
      ),
    );
  }
  return { ...test, spans: () => exporter.getFinishedSpans(), points };
}

const named = (spans: readonly ReadableSpan[], name: string): ReadableSpan => {
  const found = spans.find((span) => span.name === name);
  if (found === undefined) throw new Error(`No span ${name}`);
  return found;
};

it("names the operation of an embeddings call, which has no conversation", async () => {
  const { gateway, key, spans, points } = await observed();
  const answer = await gateway.fetch("http://in-process/v1/embeddings", {
    method: "POST",
    headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "test/tollgate/scripted", input: "Hello" }),
  });
  expect(answer.status).toBe(200);
  const { attributes } = named(spans(), "embeddings scripted");
  expect(attributes).toMatchObject({ "gen_ai.operation.name": "embeddings" });
  expect(named(spans(), "tollgate.step").attributes).not.toHaveProperty("gen_ai.conversation.id");
  const found = await points();
  for (const name of ["inference.duration", "inference.usage.input_tokens"])
    expect(found.get(`gen_ai.client.${name}`)?.map((point) => point.attributes)).toMatchObject([
      { "gen_ai.operation.name": "embeddings" },
    ]);
});

describe("the spans of a request", () => {
  it.each([
    { stream: false, code: "evidence_unavailable" },
    { stream: true, code: "evidence_unavailable" },
    { stream: false, code: "upstream_error" },
    { stream: true, code: "upstream_error" },
  ])("end with an error if the end of the Step can't be recorded: %o", async ({ stream, code }) => {
    const settleStep = () => Promise.reject(new Error("down"));
    const store = { ...memoryStore(), settleStep };
    const { gateway, chat, clock, provider, spans } = await observed({}, { store });
    if (code === "upstream_error") provider.fail(unavailable(), { times: 9 });
    const asked = gateway.fetch(chat({ stream })).then((answer) => answer.text());
    await clock.advance("60s");
    expect(await asked).toContain(code);
    const { attributes, status } = named(spans(), "tollgate.step");
    expect(status.code).toBe(SpanStatusCode.ERROR);
    expect(attributes).toMatchObject({ "error.type": code });
  });

  it("are one for its Step, and one below it for each attempt", async () => {
    const policy = definePolicy({ rules: [permit("all", {}, { fallbacks: [spare] })] });
    const { gateway, chat, provider, spans } = await observed({}, { policy, retries: { max: 0 } });
    provider.fail(unavailable(), { times: 9, when: ({ gateway: at }) => at === "test" });
    expect((await gateway.fetch(chat())).status).toBe(200);

    const all = spans();
    const step = named(all, "tollgate.step");
    const attempts = all.filter(({ name }) => name === "chat scripted");
    const { data } = await gateway.activity.list({ organizationId: everyOrganization });
    const record = await gateway.steps.get({
      organizationId: everyOrganization,
      id: data[0]?.id ?? "",
    });
    expect(attempts).toHaveLength(record.attempts.length);
    expect(attempts.length).toBeGreaterThan(1);
    for (const { parentSpanContext, kind } of attempts) {
      expect(parentSpanContext?.spanId).toBe(step.spanContext().spanId);
      expect(kind).toBe(SpanKind.CLIENT);
    }
    expect(step.attributes).toMatchObject({
      "tollgate.step.id": record.id,
      "tollgate.decision.id": record.decisionId,
      "gen_ai.conversation.id": record.sessionId,
      "tollgate.outcome": "completed",
      "tollgate.attempts": attempts.length,
    });
    expect(attempts[0]?.attributes).toMatchObject({
      "gen_ai.provider.name": "test",
      "error.type": "http_503",
    });
    expect(attempts[0]?.status.code).toBe(SpanStatusCode.ERROR);
    expect(attempts.at(-1)?.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "spare",
      "gen_ai.request.model": "scripted",
      "gen_ai.usage.input_tokens": data[0]?.promptTokens,
      "gen_ai.usage.output_tokens": data[0]?.completionTokens,
    });
  });

  it("are one with the rules for a request that the policy denies", async () => {
    const policy = definePolicy({ rules: [permit("all"), forbid("never", { gateway: "test" })] });
    const { gateway, chat, spans } = await observed({}, { policy });
    expect((await gateway.fetch(chat())).status).toBe(403);
    expect(spans().map(({ name }) => name)).toEqual(["tollgate.denied"]);
    expect(spans()[0]?.attributes).toMatchObject({
      "tollgate.rules": ["never"],
      "error.type": "policy_denied",
    });
  });

  it.each([
    [false, "links to"],
    [true, "continues"],
  ])("with trustTraceContext %s, the Step %s the client's trace", async (trustTraceContext) => {
    const { gateway, chat, spans } = await observed({ trustTraceContext });
    await gateway.fetch(chat({}, { traceparent: remote }));
    const step = named(spans(), "tollgate.step");
    expect(step.kind).toBe(SpanKind.SERVER);
    expect(step.spanContext().traceId === remote.slice(3, 35)).toBe(trustTraceContext);
    expect(step.links.map((link) => link.context.spanId)).toEqual(
      trustTraceContext ? [] : [remote.slice(36, 52)],
    );
  });

  it("send the attempt's own span upstream, and nothing without traces", async () => {
    const { gateway, chat, spans, provider } = await observed();
    await gateway.fetch(chat());
    const { traceId, spanId } = named(spans(), "chat scripted").spanContext();
    expect(provider.calls[0]?.traceparent).toBe(`00-${traceId}-${spanId}-01`);

    const untraced = await observed({ traces: false });
    await untraced.gateway.fetch(untraced.chat());
    expect(untraced.provider.calls[0]?.traceparent).toBeNull();
    expect(untraced.spans()).toEqual([]);
  });

  it("end when the client leaves in the middle of a stream", async () => {
    const { gateway, chat, spans, provider } = await observed();
    const barrier = provider.hold({ afterEvents: 2 });
    const answer = await gateway.fetch(chat({ stream: true }));
    await answer.body?.cancel();
    barrier.release();
    await gateway.close();
    expect(spans().map(({ name }) => name)).toEqual(["chat scripted", "tollgate.step"]);
  });
});

describe("below a span of the host", () => {
  beforeAll(() => {
    context.setGlobalContextManager(new StackContextManager().enable());
  });
  afterAll(() => context.disable());

  it("the Step's span is internal, whatever the client sends", async () => {
    const { gateway, chat, spans } = await observed({ trustTraceContext: true });
    const host = trace.wrapSpanContext({
      traceId: "1".repeat(32),
      spanId: "2".repeat(16),
      traceFlags: 1,
    });
    const request = chat({}, { traceparent: remote });
    await context.with(trace.setSpan(context.active(), host), () => gateway.fetch(request));
    const step = named(spans(), "tollgate.step");
    expect(step.kind).toBe(SpanKind.INTERNAL);
    expect(step.parentSpanContext?.spanId).toBe("2".repeat(16));
  });
});

describe("the metrics", () => {
  it("have the sums of tokens and cost that the records have", async () => {
    const { gateway, chat, points } = await observed();
    for (const stream of [false, true, false]) await (await gateway.fetch(chat({ stream }))).text();
    const { data } = await gateway.activity.list({ organizationId: everyOrganization });
    const sum = (of: (one: (typeof data)[number]) => number) =>
      data.reduce((total, one) => total + of(one), 0);
    const found = await points();
    const value = (name: string) => found.get(name)?.map((point) => point.value);
    expect(value("gen_ai.client.inference.usage.input_tokens")).toEqual([
      sum(({ promptTokens }) => promptTokens),
    ]);
    expect(value("gen_ai.client.inference.usage.output_tokens")).toEqual([
      sum(({ completionTokens }) => completionTokens),
    ]);
    expect(value("tollgate.cost_nano_usd")).toEqual([sum((one) => one.costNanoUsd ?? 0)]);
    expect(value("gen_ai.client.inference.duration")).toMatchObject([{ count: 3 }]);
    expect(value("gen_ai.client.inference.time_to_first_chunk")).toMatchObject([{ count: 1 }]);
    expect(value("tollgate.step.duration")).toMatchObject([{ count: 3 }]);
    expect(value("tollgate.step.overhead")).toMatchObject([{ count: 3 }]);
    expect(value("tollgate.requests")).toEqual([3]);
    expect(value("tollgate.steps.open")).toEqual([0]);
  });

  it("name the endpoint of Steps and the handler of requests apart", async () => {
    const { gateway, chat, points } = await observed();
    await gateway.fetch(chat());
    const found = await points();
    const attributesOf = (metric: string) => found.get(metric)?.[0]?.attributes;
    expect(attributesOf("tollgate.step.duration")).toMatchObject({
      "tollgate.endpoint": "chat_completions",
    });
    expect(attributesOf("tollgate.requests")).toEqual({
      "tollgate.handler": "chatCompletions",
      "tollgate.status": 200,
      "tollgate.code": "",
    });
  });

  it("add up all that has the same attributes: models of other vendors, gateways of one provider", async () => {
    const { gateway, chat, points } = await observed(
      { providers: { test: "acme", spare: "acme" } },
      { gateways: ["spare"], models: { "one/large": flat, "two/large": flat } },
    );
    for (const model of ["test/one/large", "test/two/large", "spare/one/large"])
      await gateway.fetch(chat({ model }));
    const found = await points();
    const value = (name: string) => found.get(name)?.map((point) => point.value);
    expect(value("gen_ai.client.inference.usage.input_tokens")).toEqual([30]);
    expect(value("gen_ai.client.inference.usage.output_tokens")).toEqual([15]);
    expect(value("tollgate.cost_nano_usd")).toEqual([30_000, 15_000]);
  });

  it("keep the costs of organizations and models apart, whatever their names", async () => {
    const { gateway, createKey, points } = await observed(
      { labelOrganizations: true },
      { models: { "acme/m": flat, "acme/m1": flat } },
    );
    for (const [model, organizationId] of [
      ["test/acme/m", "11"],
      ["test/acme/m1", "1"],
    ] as const)
      await gateway.fetch((await createKey({ organizationId })).chat({ model }));
    const costs = (await points()).get("tollgate.cost_nano_usd") ?? [];
    expect(costs.map(({ value, attributes }) => [Object.values(attributes), value])).toEqual([
      [["test", "m", "11"], 15_000],
      [["test", "m1", "1"], 15_000],
    ]);
  });

  it("count tokens apart that no provider reported", async () => {
    const { gateway, chat, provider, points } = await observed();
    provider.fail(unavailable(), { afterEvents: 3, answer: { text: ["one", "two", "three"] } });
    await (await gateway.fetch(chat({ stream: true }))).text();
    const found = await points();
    expect(found.get("tollgate.tokens.estimated")?.[0]?.value).toBeGreaterThan(0);
    expect(found.has("gen_ai.client.inference.usage.input_tokens")).toBe(false);
    expect(found.get("gen_ai.client.inference.duration")?.[0]?.attributes).toHaveProperty(
      "error.type",
    );
  });

  it("show the share of its fullest counter for each budget", async () => {
    const budgets = [
      { id: "b", scope: { each: "key" }, limit: { requests: 4 }, period: "day", mode: "hard" },
    ] as const;
    const { gateway, chat, points } = await observed({}, { budgets });
    await gateway.fetch(chat());
    const [point] = (await points()).get("tollgate.budget.utilization") ?? [];
    expect(point).toMatchObject({ value: 0.25, attributes: { "tollgate.budget": "b" } });
  });

  it("show the last figures of budgets, and all others, while the store hangs", async () => {
    const budgets = [{ id: "b", scope: {}, limit: { requests: 4 }, period: "day" }] as const;
    const never = () => new Promise<never>(() => {});
    let isHanging = false;
    const { gateway, chat, points } = await observed({}, { budgets }, ({ status, budgets }) => ({
      status,
      budgets: {
        ...budgets,
        list: (...asked) =>
          isHanging ? listOf(never, (row: BudgetRecord) => row) : budgets.list(...asked),
      },
    }));
    await gateway.fetch(chat());
    expect((await points()).get("tollgate.budget.utilization")).toHaveLength(1);
    isHanging = true;
    const later = performance.now() + 60_000;
    vi.spyOn(performance, "now").mockImplementation(() => later);
    const found = await points();
    expect(found.get("tollgate.budget.utilization")).toMatchObject([{ value: 0.25 }]);
    expect(found.get("tollgate.steps.open")).toHaveLength(1);
  });

  it("have at most 201 models, however many are called", async () => {
    const { gateway, chat, points } = await observed();
    for (let number = 0; number < 230; number++)
      await gateway.fetch(chat({ model: `test/tollgate/model-${number}` }));
    const models = (await points()).get("gen_ai.client.inference.duration") ?? [];
    const names = models.map(({ attributes }) => attributes["gen_ai.request.model"]);
    expect(new Set(names).size).toBe(201);
    expect(names).toContain("_other");
  });

  it("label organizations only on request", async () => {
    for (const labelOrganizations of [false, true]) {
      const { gateway, chat, points } = await observed({ labelOrganizations });
      await gateway.fetch(chat());
      const [point] = (await points()).get("tollgate.requests") ?? [];
      expect("tollgate.organization.id" in (point?.attributes ?? {})).toBe(labelOrganizations);
    }
  });
});

it("contains no prompt, answer, label, header, or key", async () => {
  const { gateway, chat, provider, key, spans, points } = await observed(
    {},
    { key: { label: `label ${canary}` } },
  );
  provider.reply(`reply ${canary}`);
  provider.fail(
    new ProviderError(canary, { reason: "http_400", status: 400, delivery: "answered" }),
  );
  const messages = [{ role: "user", content: `prompt ${canary}` }];
  await gateway.fetch(chat({ messages, metadata: { a: canary } }, { "x-canary": canary }));
  await gateway.fetch(chat({ messages, user: canary }));
  const everything = JSON.stringify([
    spans().map(({ name, attributes, events, status }) => [name, attributes, events, status]),
    [...(await points())],
  ]);
  expect(everything).toContain("gen_ai");
  expect(everything).not.toContain(canary);
  expect(everything).not.toContain(key.secret);
});
