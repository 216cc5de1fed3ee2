import type { Attributes, Meter, ObservableResult } from "@opentelemetry/api";
import type { Gateway, GatewayEvent } from "@tollgate/core";
import { boundedLabels, modelParts, operationOf } from "./labels.ts";
import { gen, own, stable } from "./names.ts";
import type { TelemetryOptions } from "./options.ts";
import type { ObservedRequest } from "./requests.ts";

type Event<Type extends GatewayEvent["type"]> = Extract<GatewayEvent, { readonly type: Type }>;

/** Turns the events of a gateway into measurements. */
export interface Metrics {
  readonly observe: (event: GatewayEvent, request: ObservedRequest | null) => void;
  readonly watch: (gateway: Pick<Gateway, "status" | "budgets">) => void;
}

/** The most models, rules and organizations with their own series. */
const max = { models: 200, rules: 50, organizations: 100, budgets: 100 };
/** How long the figures of budgets are kept before they are read again, in milliseconds. */
const budgetsKeptMs = 15_000;
/** How long an export of metrics waits for the figures of budgets, in milliseconds. */
const maxWaitMs = 1_000;

/** 10 ms to 82 s, doubling. */
const callBuckets = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power);
/** 0.1 ms to 1.6 s, doubling. */
const ownBuckets = Array.from({ length: 15 }, (_, power) => 0.0001 * 2 ** power);

/** Instruments for attempts, as OpenTelemetry's conventions name them, and for requests, Steps and the store. */
export function createMetrics(
  meter: Meter,
  { providers = {}, labelOrganizations = false }: TelemetryOptions,
): Metrics {
  const modelLabel = boundedLabels(max.models);
  const ruleLabel = boundedLabels(max.rules);
  const organizationLabel = boundedLabels(max.organizations);
  const seconds = (name: string, boundaries: readonly number[], description: string) =>
    meter.createHistogram(name, {
      unit: "s",
      description,
      advice: { explicitBucketBoundaries: [...boundaries] },
    });
  const sum = (name: string, unit: string, description: string) =>
    createSum(meter, name, unit, description);

  const duration = seconds(gen.duration, callBuckets, "Duration of an attempt");
  const firstChunk = seconds(gen.timeToFirstChunk, callBuckets, "Time to a stream's first token");
  const tokens = {
    input: sum(`${gen.usage}.input_tokens`, "{token}", "Input tokens that providers reported"),
    output: sum(`${gen.usage}.output_tokens`, "{token}", "Output tokens that providers reported"),
    cacheRead: sum(`${gen.usage}.cache_read.input_tokens`, "{token}", "Input tokens from a cache"),
    reasoning: sum(`${gen.usage}.reasoning.output_tokens`, "{token}", "Tokens spent on reasoning"),
    estimated: sum("tollgate.tokens.estimated", "{token}", "Tokens that providers didn't report"),
  };
  const requests = sum("tollgate.requests", "{request}", "Answered requests");
  const stepDuration = seconds("tollgate.step.duration", callBuckets, "Duration of a Step");
  const overhead = seconds(
    "tollgate.step.overhead",
    ownBuckets,
    "Duration of a Step without its attempts",
  );
  const storeDuration = seconds("tollgate.store.duration", ownBuckets, "Duration of a write");
  const cost = sum(
    "tollgate.cost_nano_usd",
    "{nUSD}",
    "Cost of attempts with a known price, in nanodollars",
  );
  const denials = sum("tollgate.policy.denials", "{request}", "Requests that were denied");
  const recovered = sum("tollgate.recovered", "{step}", "Steps of processes that died");
  const degraded = sum("tollgate.degraded", "{failure}", "Background failures");

  // Without a first value, a rate has no first increase.
  recovered("", 0, () => ({}));
  degraded("", 0, () => ({}));

  const storeOpen = { "tollgate.operation": "open" };
  const storeSettle = { "tollgate.operation": "settle" };
  // A series is named by its model, or by its operation and its model.
  const attributesOf = cached(2 * (max.models + 1), (series: string) => {
    const [id = "", operation = "chat"] = series.split(" ").reverse();
    const { gateway, model } = modelParts(id);
    const called: Attributes = {
      [gen.operation]: operation,
      [gen.provider]: providers[gateway] ?? gateway,
      [gen.requestModel]: model,
    };
    return {
      called,
      counted: { ...called, [gen.modality]: "unknown" },
      priced: { "tollgate.gateway": gateway, [gen.requestModel]: model },
    };
  });
  const other = "_other/_other/_other";
  /** The label of an organization; empty without one. */
  const organizationOf = (organizationId: string | null): string =>
    labelOrganizations && organizationId !== null ? organizationLabel(organizationId) : "";
  const withOrganization = (attributes: Attributes, label: string): Attributes =>
    label === "" ? attributes : { ...attributes, [own.organizationId]: label };

  function attemptEnded(event: Event<"attempt.ended">, request: ObservedRequest | null): void {
    const label = modelLabel(event.model) === event.model ? event.model : other;
    const operation = operationOf(request?.opened?.endpoint);
    const series = operation === "chat" ? label : `${operation} ${label}`;
    const { called, counted, priced } = attributesOf(series);
    const isCut = event.outcome !== "completed";
    const ended = isCut ? { ...called, [stable.errorType]: event.reason ?? event.outcome } : called;
    duration.record(event.durationMs / 1_000, ended);
    if (request?.opened?.stream === true && event.timeToFirstTokenMs !== null)
      firstChunk.record(event.timeToFirstTokenMs / 1_000, called);
    const { usage } = event;
    if (event.usageBasis === "estimated") {
      if (usage.totalTokens > 0) tokens.estimated(label, usage.totalTokens, () => priced);
    } else {
      tokens.input(series, usage.promptTokens, () => counted);
      tokens.output(series, usage.completionTokens, () => counted);
      if (usage.cachedTokens) tokens.cacheRead(series, usage.cachedTokens, () => counted);
      if (usage.reasoningTokens) tokens.reasoning(series, usage.reasoningTokens, () => counted);
    }
    if (event.costNanoUsd !== null && event.costNanoUsd > 0) {
      const by = organizationOf(event.organizationId);
      cost(`${label} ${by}`, event.costNanoUsd, () => withOrganization(priced, by));
    }
  }

  function settled(event: Event<"step.settled">, request: ObservedRequest | null): void {
    if (event.requestId === null) recovered("", 1, () => ({}));
    if (event.writeMs !== null) storeDuration.record(event.writeMs / 1_000, storeSettle);
    if (!request?.opened) return;
    const { endpoint } = request.opened;
    const totalMs = event.at - request.received.at;
    stepDuration.record(totalMs / 1_000, {
      [own.endpoint]: endpoint,
      [own.outcome]: event.outcome,
    });
    overhead.record(Math.max(0, totalMs - request.attemptsMs) / 1_000, {
      [own.endpoint]: endpoint,
    });
  }

  function answered({ endpoint, status, code, organizationId }: Event<"request.answered">): void {
    const by = organizationOf(organizationId);
    requests(`${endpoint} ${status} ${code} ${by}`, 1, () =>
      withOrganization(
        {
          [own.handler]: endpoint ?? "",
          "tollgate.status": status,
          "tollgate.code": code ?? "",
        },
        by,
      ),
    );
  }

  const observe = (event: GatewayEvent, request: ObservedRequest | null): void => {
    switch (event.type) {
      case "request.answered":
        answered(event);
        return;
      case "request.denied":
        for (const rule of (event.rules.length === 0 ? [""] : event.rules).map(ruleLabel))
          denials(`${event.code} ${rule}`, 1, () => ({
            "tollgate.rule": rule,
            "tollgate.code": event.code,
          }));
        return;
      case "step.opened":
        storeDuration.record(event.writeMs / 1_000, storeOpen);
        return;
      case "attempt.ended":
        attemptEnded(event, request);
        return;
      case "step.settled":
        settled(event, request);
        return;
      case "gateway.degraded":
        degraded(event.what, 1, () => ({ "tollgate.what": event.what }));
        return;
      default:
        return;
    }
  };
  return { observe, watch: (gateway) => watchGateway(meter, gateway) };
}

function watchGateway(meter: Meter, gateway: Pick<Gateway, "status" | "budgets">): void {
  const gauge = (name: string, unit: string, description: string) =>
    meter.createObservableGauge(name, { unit, description });
  const status = {
    open: gauge("tollgate.steps.open", "{step}", "Steps that this process still has to settle"),
    admitted: gauge("tollgate.requests.open", "{request}", "Admitted requests that have not ended"),
    drains: gauge("tollgate.drains", "{answer}", "Answers read to their end without a client"),
    lease: gauge("tollgate.lease.age", "s", "Time since the process renewed its lease"),
    waiting: gauge("tollgate.store.waiting", "{call}", "Store calls that wait"),
    connections: gauge("tollgate.store.connections", "{connection}", "Store connections in use"),
  };
  meter.addBatchObservableCallback((result) => {
    const now = gateway.status();
    result.observe(status.open, now.openSteps);
    result.observe(status.admitted, now.admitted);
    result.observe(status.drains, now.drains);
    result.observe(status.lease, now.leaseAgeMs / 1_000);
    result.observe(status.waiting, now.store.waiting);
    result.observe(status.connections, now.store.inUse);
  }, Object.values(status));

  const readBudgets = keptFor(budgetsKeptMs, () => budgetShares(gateway.budgets));
  const budgetGauge = (name: string, description: string, of: (share: BudgetShare) => number) =>
    gauge(name, "1", description).addCallback(async (result: ObservableResult) => {
      for (const share of await readBudgets())
        result.observe(of(share), { "tollgate.budget": share.budgetId });
    });
  const ofFullest = "of the limit, in the fullest counter of a budget";
  budgetGauge("tollgate.budget.utilization", `Settled and held share ${ofFullest}`, (s) => s.used);
  budgetGauge("tollgate.budget.held", `Held share ${ofFullest}`, (share) => share.held);
}

/** The shares of a budget's limit in its fullest counter. */
interface BudgetShare {
  readonly budgetId: string;
  readonly used: number;
  readonly held: number;
}

/** Reads the first counters of the first budgets. A budget for each key can have any number of them. */
async function budgetShares(budgets: Gateway["budgets"]): Promise<readonly BudgetShare[]> {
  const shares: BudgetShare[] = [];
  const { data } = await budgets.list({}, { limit: max.budgets });
  for (const { id } of data) {
    const counters = await budgets.status({ id }, { limit: max.budgets });
    const fullest = counters.data
      .filter(({ limit }) => limit > 0)
      .map(({ settled, held, limit }) => ({
        budgetId: id,
        used: (settled + held) / limit,
        held: held / limit,
      }))
      .sort((one, two) => two.used - one.used)[0];
    if (fullest !== undefined) shares.push(fullest);
  }
  return shares;
}

/**
 * Keeps a result for some time, and for longer if reading the next one fails or takes more than a second. An export that
 * waited for the store would report no metrics at all.
 */
function keptFor<Result>(
  milliseconds: number,
  read: () => Promise<readonly Result[]>,
): () => Promise<readonly Result[]> {
  let kept: readonly Result[] = [];
  let reading: Promise<void> | null = null;
  let readAt = Number.NEGATIVE_INFINITY;
  const renew = async (): Promise<void> => {
    kept = await read().catch(() => kept);
    reading = null;
  };
  return async () => {
    const now = performance.now();
    if (reading === null && now - readAt >= milliseconds) {
      readAt = now;
      reading = renew();
    }
    if (reading !== null) await endOrWait(reading, maxWaitMs);
    return kept;
  };
}

/** Resolves with a promise, or after some time. */
async function endOrWait(ending: Promise<void>, milliseconds: number): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  await Promise.race([ending, late]);
  clearTimeout(timer);
}

/** Computes a value once for each of a bounded number of keys. */
function cached<Value>(bound: number, compute: (key: string) => Value): (key: string) => Value {
  const values = new Map<string, Value>();
  return (key) => {
    const known = values.get(key);
    if (known !== undefined) return known;
    const value = compute(key);
    if (values.size < bound) values.set(key, value);
    return value;
  };
}

/** The most series of one sum. Further ones are added up in one for all. */
const maxSeries = 2_000;

interface Series {
  readonly attributes: Attributes;
  value: number;
}

/** Adds an amount to the series of a key. `attributes` is called once for each key. */
type Sum = (key: string, amount: number, attributes: () => Attributes) => void;

/**
 * Creates a counter that adds up here and is read when metrics are collected. The SDK would sort and hash the attributes of
 * every single addition.
 */
function createSum(meter: Meter, name: string, unit: string, description: string): Sum {
  const series = new Map<string, Series>();
  // Keys with equal attributes share one: of two values with the same attributes, an SDK exports the last.
  const named = new Map<string, Series>();
  const beyond = { attributes: { "otel.metric.overflow": true }, value: 0 };
  meter.createObservableCounter(name, { unit, description }).addCallback((result) => {
    for (const { value, attributes } of named.values()) result.observe(value, attributes);
    if (beyond.value > 0) result.observe(beyond.value, beyond.attributes);
  });
  return (key, amount, attributes) => {
    const known = series.get(key);
    if (known !== undefined) {
      known.value += amount;
      return;
    }
    if (series.size >= maxSeries) {
      beyond.value += amount;
      return;
    }
    const added = { attributes: attributes(), value: 0 };
    const name = JSON.stringify(added.attributes);
    const shared = named.get(name) ?? added;
    shared.value += amount;
    named.set(name, shared);
    series.set(key, shared);
  };
}
