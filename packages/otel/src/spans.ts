import {
  type Attributes,
  type Context,
  isSpanContextValid,
  type Link,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { GatewayEvent } from "@tollgate/core";
import { modelParts, operationOf } from "./labels.ts";
import { gen, own, stable } from "./names.ts";
import type { TelemetryOptions } from "./options.ts";
import type { ObservedRequest } from "./requests.ts";

type Event<Type extends GatewayEvent["type"]> = Extract<GatewayEvent, { readonly type: Type }>;

/** Turns the events of requests into spans. */
export interface Spans {
  readonly observe: (event: GatewayEvent, request: ObservedRequest) => void;
  /** The W3C header for the current attempt of a request. Null without one, or if its span isn't recorded. */
  readonly traceparent: (request: ObservedRequest | null) => string | null;
  /** Ends the spans of a request whose end was not seen. */
  readonly abandon: (request: ObservedRequest) => void;
}

/** A span for each Step, and one below it for each of its attempts. */
export function createSpans(
  tracer: Tracer,
  { providers = {}, trustTraceContext = false }: TelemetryOptions,
): Spans {
  const observe = (event: GatewayEvent, request: ObservedRequest): void => {
    switch (event.type) {
      case "request.denied":
        denied(event, request);
        return;
      case "step.opened":
        request.span = start("tollgate.step", request, {
          [own.requestId]: event.requestId,
          [own.stepId]: event.stepId,
          [own.decisionId]: event.decisionId,
          [own.organizationId]: event.organizationId,
          [own.keyId]: event.keyId,
          [own.endpoint]: event.endpoint,
          [own.dataClass]: event.dataClass,
          ...(event.sessionId === null ? {} : { [gen.conversation]: event.sessionId }),
        });
        return;
      case "attempt.started":
        request.attemptSpan = startAttempt(event, request);
        return;
      case "attempt.ended":
        endAttempt(event, request);
        return;
      case "step.settled":
        settled(event, request);
        return;
      case "answer.failed":
        unsettled(event, request);
        return;
      default:
        return;
    }
  };

  /** Starts a span at the time its request arrived, below the host's active span if it has one. */
  function start(name: string, request: ObservedRequest, attributes: Attributes): Span {
    const hasParent = trace.getSpan(request.context) !== undefined;
    const client = hasParent ? null : spanContextOf(request.received.traceparent);
    const parent: Context =
      client !== null && trustTraceContext
        ? trace.setSpanContext(request.context, client)
        : request.context;
    const links: Link[] = client !== null && !trustTraceContext ? [{ context: client }] : [];
    return tracer.startSpan(
      name,
      {
        kind: hasParent ? SpanKind.INTERNAL : SpanKind.SERVER,
        startTime: request.received.at,
        attributes,
        links,
      },
      parent,
    );
  }

  function denied(event: Event<"request.denied">, request: ObservedRequest): void {
    const span = start("tollgate.denied", request, {
      [own.requestId]: event.requestId,
      [own.decisionId]: event.decisionId,
      [own.organizationId]: event.organizationId,
      [own.keyId]: event.keyId,
      [own.dataClass]: event.dataClass,
      [own.source]: event.source,
      [own.rules]: [...event.rules],
      [stable.errorType]: event.code,
    });
    span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(event.at);
  }

  function startAttempt(event: Event<"attempt.started">, request: ObservedRequest): Span {
    const { gateway, model } = modelParts(event.model);
    const operation = operationOf(request.opened?.endpoint);
    return tracer.startSpan(
      `${operation} ${model}`,
      {
        kind: SpanKind.CLIENT,
        startTime: event.at,
        attributes: {
          [gen.operation]: operation,
          [gen.provider]: providers[gateway] ?? gateway,
          [gen.requestModel]: model,
          [gen.requestStream]: request.opened?.stream ?? false,
          [own.stepId]: event.stepId,
          [own.decisionId]: event.decisionId,
          [own.attempt]: event.attempt,
        },
      },
      request.span === null ? request.context : trace.setSpan(request.context, request.span),
    );
  }

  function endAttempt(event: Event<"attempt.ended">, request: ObservedRequest): void {
    const span = request.attemptSpan;
    request.attemptSpan = null;
    if (span === null) return;
    if (span.isRecording()) {
      span.setAttributes(endAttributes(event, request.opened?.stream ?? false));
      if (event.outcome !== "completed") span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end(event.at);
  }

  function settled(event: Event<"step.settled">, request: ObservedRequest): void {
    const { span } = request;
    request.span = null;
    if (span === null) return;
    if (span.isRecording()) {
      span.setAttribute(own.outcome, event.outcome);
      span.setAttribute(own.attempts, event.attempts);
      if (event.costNanoUsd !== null) span.setAttribute(own.costNanoUsd, event.costNanoUsd);
      if (event.reason !== null) span.setAttribute(own.reason, event.reason);
      if (event.outcome !== "completed") {
        span.setAttribute(stable.errorType, event.reason ?? event.outcome);
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
    }
    span.end(event.at);
  }

  /** Ends the span of a Step whose end couldn't be recorded: an answer fails after its Step is settled. */
  function unsettled(event: Event<"answer.failed">, request: ObservedRequest): void {
    const { span } = request;
    request.span = null;
    span?.setAttribute(stable.errorType, event.code).setStatus({ code: SpanStatusCode.ERROR });
    span?.end(event.at);
  }

  return {
    observe,
    traceparent(request) {
      const given = request?.attemptSpan?.spanContext();
      if (given === undefined || !isSpanContextValid(given)) return null;
      const flags = (given.traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, "0");
      return `00-${given.traceId}-${given.spanId}-${flags}`;
    },
    abandon({ attemptSpan, span }) {
      attemptSpan?.end();
      span?.end();
    },
  };
}

function endAttributes(event: Event<"attempt.ended">, stream: boolean): Attributes {
  const { usage } = event;
  const [address, port] = hostParts(event.host);
  const isCut = event.outcome !== "completed";
  return {
    [own.outcome]: event.outcome,
    [own.usageBasis]: event.usageBasis,
    [gen.inputTokens]: usage.promptTokens,
    [gen.outputTokens]: usage.completionTokens,
    [gen.cacheReadTokens]: usage.cachedTokens,
    [gen.cacheWriteTokens]: usage.cacheWriteTokens,
    [gen.reasoningTokens]: usage.reasoningTokens,
    [gen.responseModel]: event.providerModel ?? undefined,
    [gen.responseTimeToFirstChunk]:
      stream && event.timeToFirstTokenMs !== null ? event.timeToFirstTokenMs / 1_000 : undefined,
    [gen.responseFinishReasons]: isCut ? ["error"] : undefined,
    [own.costNanoUsd]: event.costNanoUsd ?? undefined,
    [stable.serverAddress]: address,
    [stable.serverPort]: port,
    [stable.errorType]: isCut ? (event.reason ?? event.outcome) : undefined,
  };
}

/** Splits `api.openai.com:443`. A host without a port has that of HTTPS. */
function hostParts(host: string | null): readonly [address?: string, port?: number] {
  if (host === null) return [];
  const [, address = host, port = "443"] = /^(.*?)(?::(\d+))?$/.exec(host) ?? [];
  return [address, Number(port)];
}

function spanContextOf(traceparent: string | null): SpanContext | null {
  const [, traceId, spanId, flags] = traceparent?.split("-") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
  };
}
