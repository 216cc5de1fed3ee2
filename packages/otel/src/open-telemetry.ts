import { context, metrics as globalMetrics, trace as globalTrace } from "@opentelemetry/api";
import type { Gateway, GatewayEvent, GatewayOptions, Observer } from "@tollgate/core";
import { createMetrics } from "./metrics.ts";
import type { TelemetryOptions } from "./options.ts";
import { observedRequests } from "./requests.ts";
import { createSpans } from "./spans.ts";

/** The telemetry of one gateway. */
export interface Telemetry {
  /** Options for `createGateway`. Add your own observers to `observers`. */
  readonly options: Required<Pick<GatewayOptions, "observers" | "traceparent">>;
  /** Adds gauges: the gateway's status, and what its budgets have used. Read when metrics are collected. */
  watch(gateway: Pick<Gateway, "status" | "budgets">): void;
}

/**
 * Reports a gateway's events as spans and metrics, with the names of OpenTelemetry's conventions for generative AI. Never
 * reports content, credentials, labels or headers.
 *
 * @example
 * const telemetry = openTelemetry();
 * const gateway = createGateway({ ...options, ...telemetry.options });
 * telemetry.watch(gateway);
 */
export function openTelemetry(options: TelemetryOptions = {}): Telemetry {
  const { traces = true, metrics = true } = options;
  const { tracerProvider = globalTrace, meterProvider = globalMetrics } = options;
  const spans = traces ? createSpans(tracerProvider.getTracer("@tollgate/otel"), options) : null;
  const measures = metrics
    ? createMetrics(meterProvider.getMeter("@tollgate/otel"), options)
    : null;
  const requests = observedRequests((request) => spans?.abandon(request));

  const observe: Observer = (event: GatewayEvent) => {
    if (event.type === "request.received") {
      requests.add(event, context.active());
      return;
    }
    const request = "requestId" in event ? requests.get(event.requestId) : null;
    if (request !== null) {
      if (event.type === "step.opened") request.opened = event;
      else if (event.type === "attempt.ended") request.attemptsMs += event.durationMs;
      else if (event.type === "step.settled" || event.type === "answer.failed")
        request.isSettled = true;
      else if (event.type === "request.answered") request.isAnswered = true;
      spans?.observe(event, request);
    }
    measures?.observe(event, request);
    if (request !== null) requests.forgetEnded(request);
  };
  return {
    options: {
      observers: [observe],
      traceparent: ({ requestId }) => spans?.traceparent(requests.get(requestId)) ?? null,
    },
    watch: (gateway) => measures?.watch(gateway),
  };
}
