/**
 * `npm run bench:telemetry`: the CPU time that `@tollgate/otel` takes for the events of one plain request, and what a request
 * takes that nobody observes. It replays the events of a real request, so that nothing else of the gateway is measured. Without
 * observers, a request only asks at each place that has an event whether there are any: it measures these questions, one for
 * each place in core's sources, more than one plain request asks. Fails above a bound.
 */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  NoopSpanProcessor,
  type Sampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { GatewayEvent, Observer } from "@tollgate/core";
import { openTelemetry } from "@tollgate/otel";
import { createTestGateway } from "@tollgate/testing";
import { readNumbers } from "./read-numbers.ts";

const { requests, rounds } = readNumbers({ requests: 50_000, rounds: 5 });

/** Collects nothing by itself: only the measurements are measured. */
class IdleReader extends MetricReader {
  protected override onForceFlush(): Promise<void> {
    return Promise.resolve();
  }
  protected override onShutdown(): Promise<void> {
    return Promise.resolve();
  }
}

const events = await eventsOfRequest();
const tracer = (sampler: Sampler) =>
  new TracerProvider({ sampler, spanProcessors: [new NoopSpanProcessor()] });
const meters = () => new MeterProvider({ readers: [new IdleReader()] });
const cases = {
  metrics: () => openTelemetry({ traces: false, meterProvider: meters() }),
  "traces, sampled out": () =>
    openTelemetry({ metrics: false, tracerProvider: tracer(new AlwaysOffSampler()) }),
  "traces, sampled in": () =>
    openTelemetry({ metrics: false, tracerProvider: tracer(new AlwaysOnSampler()) }),
  "metrics and traces, sampled out": () =>
    openTelemetry({ meterProvider: meters(), tracerProvider: tracer(new AlwaysOffSampler()) }),
};

/** Microseconds of CPU time per request. */
const bounds = {
  "nothing observed": 0.5,
  metrics: 8,
  "traces, sampled out": 10,
  "traces, sampled in": 18,
  "metrics and traces, sampled out": 10,
} as const;
let isWithin = true;

process.stdout.write(`events of a request: ${events.map(({ type }) => type).join(", ")}\n`);
measure("nothing observed", askingNobody(placesOfEvents()));
for (const name of namesOf(cases)) {
  const [observer] = cases[name]().options.observers;
  if (observer === undefined) throw new Error("no observer");
  measure(name, () => {
    for (const event of events) observer(event);
  });
}
process.exitCode = isWithin ? 0 : 1;

function namesOf<Name extends string>(record: Readonly<Record<Name, unknown>>): readonly Name[] {
  const names: Name[] = [];
  for (const name in record) names.push(name);
  return names;
}

/** Prints the median of several rounds. */
function measure(name: keyof typeof bounds, request: () => void): void {
  const [, ...warm] = Array.from({ length: rounds + 1 }, () => microsecondsPerRequest(request));
  const middle = warm.sort((a, b) => a - b)[Math.floor(warm.length / 2)] ?? Number.NaN;
  if (middle > bounds[name]) isWithin = false;
  const figure = middle.toFixed(name === "nothing observed" ? 3 : 1);
  process.stdout.write(`${name.padEnd(34)} ${figure} us CPU, bound ${bounds[name]}\n`);
}

/** How often core's sources ask whether anybody observes. */
function placesOfEvents(): number {
  const core = fileURLToPath(new URL("../../../packages/core/src", import.meta.url));
  const sources = globSync("**/*.ts", { cwd: core }).map((path) =>
    readFileSync(`${core}/${path}`, "utf8"),
  );
  return sources.join("").split("isObserved()").length - 1;
}

/** Asks as a request does, through its context. */
function askingNobody(places: number): () => void {
  const observers = new Set<Observer>();
  const contexts = [0, 1].map(() => ({ isObserved: () => observers.size > 0 }));
  let request = 0;
  return () => {
    const context = contexts[request++ % 2];
    for (let place = 0; place < places; place++)
      if (context?.isObserved()) throw new Error("somebody observes");
  };
}

function microsecondsPerRequest(ask: () => void): number {
  const started = process.cpuUsage();
  for (let request = 0; request < requests; request++) ask();
  const { user, system } = process.cpuUsage(started);
  return (user + system) / requests;
}

async function eventsOfRequest(): Promise<readonly GatewayEvent[]> {
  const seen: GatewayEvent[] = [];
  const { gateway, chat } = await createTestGateway({ observers: [(event) => seen.push(event)] });
  await (await gateway.fetch(chat())).text();
  await gateway.close();
  return seen.filter((event) => "requestId" in event);
}
