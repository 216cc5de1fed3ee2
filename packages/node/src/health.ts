import type { IncomingMessage, ServerResponse } from "node:http";

/** Whether a process should get requests, and if not, why. */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
  /** Faults that don't stop it. Default none. */
  readonly degraded?: readonly string[];
}

/** Says whether the process should get requests, such as `gateway.health`. */
export type HealthCheck = () => Promise<Readiness>;

/** Whether a request is a check of a load balancer, and not one for the gateway. */
export function isHealthCheck({ method, url }: IncomingMessage): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  return url === "/healthz" || url === "/readyz";
}

/** Answers `/healthz` with 200, and `/readyz` with what `check` says. */
export async function answerHealthCheck(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  check: HealthCheck,
): Promise<void> {
  const {
    ready,
    reasons,
    degraded = [],
  } = incoming.url === "/readyz" ? await check().catch(() => unknown) : healthy;
  if (outgoing.destroyed) return;
  outgoing.writeHead(ready ? 200 : 503, {
    "content-type": "application/json",
    "cache-control": "no-store",
  });
  outgoing.end(JSON.stringify({ reasons, degraded }));
}

const healthy: Readiness = { ready: true, reasons: [] };
const unknown: Readiness = { ready: false, reasons: ["unknown"] };

/** The readiness of a closing server. */
export const notReady: Readiness = { ready: false, reasons: ["closing"] };
