import type { AdminFailure } from "@tollgate/admin";
import type { GatewayEvent } from "@tollgate/core";
import { pino } from "pino";

/** The lines of a log: failed requests and warnings, or every request as well. */
export type LogLevel = "warnings" | "requests";

/** An event of the gateway, or a failed request to its admin API. */
type LoggableEvent = GatewayEvent | ({ readonly type: "admin.failed" } & AdminFailure);

/**
 * Creates an observer that writes one line of JSON for each event it logs. A line has only the members that are named below:
 * ids, codes and numbers, so nothing has to be removed from it.
 */
export function eventLog(
  level: LogLevel,
  write: (line: string) => void,
): (event: LoggableEvent) => void {
  const logger = pino(
    {
      base: null,
      level: "info",
      timestamp: false,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => write(escaped(line)) },
  );
  /** Why the request that is about to fail failed. */
  let cause: Extract<GatewayEvent, { readonly type: "request.failed" }> | null = null;
  return (event) => {
    if (event.type === "request.failed") cause = event;
    const line = lineOf(event, level);
    if (line === null) return;
    const where = "requestId" in event && event.requestId === cause?.requestId ? cause.where : null;
    const { severity, ...members } = line;
    logger[severity]({
      time: new Date(event.at).toISOString(),
      event: event.type,
      ...members,
      ...(where === null || event.type !== "answer.failed" ? {} : { where }),
    });
  };
}

interface LoggedEvent {
  readonly severity: "info" | "warn" | "error";
  readonly [member: string]: string | number | null;
}

/** The members of an event that a line has; null for an event that is not logged. */
function lineOf(event: LoggableEvent, level: LogLevel): LoggedEvent | null {
  switch (event.type) {
    case "request.answered": {
      if (level !== "requests") return null;
      const { requestId, endpoint, status, code, organizationId, keyId, durationMs } = event;
      const request = { requestId, endpoint, status, code, organizationId, keyId, durationMs };
      return { severity: "info", ...request };
    }
    case "answer.failed": {
      const { requestId, code, status, organizationId, keyId, stepId } = event;
      const severity = status >= 500 ? "error" : "warn";
      return { severity, requestId, code, status, organizationId, keyId, stepId };
    }
    case "admin.failed": {
      const { requestId, operation, code, status, where } = event;
      const failed = { requestId, operation, code, status };
      const severity = status >= 500 ? "error" : "warn";
      return { severity, ...failed, ...(where === null ? {} : { where }) };
    }
    case "budget.exhausted":
    case "budget.warned": {
      const { organizationId, budgetId, unit, limit } = event;
      const reached = event.type === "budget.warned" ? { threshold: event.threshold } : {};
      return { severity: "warn", organizationId, budgetId, unit, limit, ...reached };
    }
    case "connection.unavailable": {
      const { organizationId, gateway, connectionId, reason } = event;
      return { severity: "error", organizationId, gateway, connectionId, reason };
    }
    case "breaker.opened":
    case "breaker.closed": {
      const { model, organizationId } = event;
      return { severity: event.type === "breaker.opened" ? "warn" : "info", model, organizationId };
    }
    case "gateway.degraded":
      return { severity: "error", what: event.what };
    case "gateway.restored":
      return { severity: "info", what: event.what };
    case "maintenance.ran": {
      const { what, count, durationMs } = event;
      const isRecovery = what === "recovery" && count > 0;
      return isRecovery ? { severity: "warn", what, count, durationMs } : null;
    }
    default:
      return null;
  }
}

/** Escapes characters that a terminal or a log reader could interpret. */
function escaped(json: string): string {
  return json.replace(
    /[^\x20-\x7e\n]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
