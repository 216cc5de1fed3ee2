/** Traces and metrics of a gateway, for OpenTelemetry. */
export { openTelemetry, type Telemetry } from "./open-telemetry.ts";
export type { TelemetryOptions } from "./options.ts";
