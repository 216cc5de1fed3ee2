import type { MeterProvider, TracerProvider } from "@opentelemetry/api";

/** Options of `openTelemetry`. By default, everything goes to the global providers of `@opentelemetry/api`. */
export interface TelemetryOptions {
  /** A span for each Step, and one below it for each attempt. Default: true. */
  readonly traces?: boolean;
  /** Counters, histograms and gauges. Default: true. */
  readonly metrics?: boolean;
  readonly tracerProvider?: TracerProvider;
  readonly meterProvider?: MeterProvider;
  /**
   * `gen_ai.provider.name` of gateways, such as `{ eu: "azure.ai.openai" }`. Default: the gateway's name. OpenTelemetry
   * lists the well-known values.
   */
  readonly providers?: Readonly<Record<string, string>>;
  /**
   * Whether a client's `traceparent` becomes the parent of the Step's span. Default: false. It becomes a link, because
   * anyone could otherwise force sampling or add spans to a trace. A span that is active in your own code is always the
   * parent.
   */
  readonly trustTraceContext?: boolean;
  /**
   * Whether metrics of cost and requests have the label `tollgate.organization.id`, for the first 100 organizations.
   * Default: false.
   */
  readonly labelOrganizations?: boolean;
}
