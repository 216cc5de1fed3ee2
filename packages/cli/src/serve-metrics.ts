import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import { RuntimeNodeInstrumentation } from "@opentelemetry/instrumentation-runtime-node";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import type { Gateway } from "@tollgate/core";
import { openTelemetry } from "@tollgate/otel";
import { listenFailure } from "./failure.ts";

/** Serves the metrics of a gateway and of its process to Prometheus, at `/metrics`, until `close`. */
export async function serveMetrics(
  gateway: Gateway,
  { port, host }: { readonly port: number; readonly host: string },
): Promise<{ readonly close: () => Promise<void> }> {
  const exporter = new PrometheusExporter({
    port,
    host,
    preventServerStart: true,
    withoutScopeInfo: true,
    // It would name the path of the program.
    withoutTargetInfo: true,
  });
  const meterProvider = new MeterProvider({ readers: [exporter] });
  const process = new RuntimeNodeInstrumentation();
  process.setMeterProvider(meterProvider);
  const telemetry = openTelemetry({ traces: false, meterProvider });
  for (const observer of telemetry.options.observers) gateway.observe(observer);
  telemetry.watch(gateway);
  try {
    await exporter.startServer();
  } catch (thrown) {
    throw listenFailure(thrown, { port, host }, { port: "--metrics-port", host: "--host" });
  }
  return {
    async close() {
      process.disable();
      await meterProvider.shutdown();
    },
  };
}
