import type { Context, Span } from "@opentelemetry/api";
import type { GatewayEvent } from "@tollgate/core";

/** The most requests whose state is kept. Beyond it, the oldest is forgotten. */
const maxRequests = 20_000;

type Received = Extract<GatewayEvent, { readonly type: "request.received" }>;
type Opened = Extract<GatewayEvent, { readonly type: "step.opened" }>;

/** A request between its first event and its last. */
export interface ObservedRequest {
  readonly received: Received;
  /** The context that was active when it arrived: that of the host's own instrumentation. */
  readonly context: Context;
  opened: Opened | null;
  /** The time that its attempts took so far. */
  attemptsMs: number;
  /** The spans of its Step and of its current attempt. */
  span: Span | null;
  attemptSpan: Span | null;
  isAnswered: boolean;
  /** Whether its Step is settled, or never will be for this request: then recovery settles it, and names no request. */
  isSettled: boolean;
}

/** The requests in flight, by id. */
export interface ObservedRequests {
  readonly add: (received: Received, context: Context) => ObservedRequest;
  /** Null for a request that is unknown, such as one whose Step another process recovers. */
  readonly get: (requestId: string | null) => ObservedRequest | null;
  /** Forgets a request whose last event was reported: a stream is answered before it is settled, others after. */
  readonly forgetEnded: (request: ObservedRequest) => void;
  readonly size: () => number;
}

/** Keeps a bounded number of requests. `onForgotten` gets one that had to make room. */
export function observedRequests(
  onForgotten: (request: ObservedRequest) => void,
): ObservedRequests {
  const requests = new Map<string, ObservedRequest>();
  return {
    add(received, context) {
      if (requests.size >= maxRequests) {
        const [oldest] = requests;
        if (oldest !== undefined) {
          requests.delete(oldest[0]);
          onForgotten(oldest[1]);
        }
      }
      const request: ObservedRequest = {
        received,
        context,
        opened: null,
        attemptsMs: 0,
        span: null,
        attemptSpan: null,
        isAnswered: false,
        isSettled: false,
      };
      requests.set(received.requestId, request);
      return request;
    },
    get: (requestId) => (requestId === null ? null : (requests.get(requestId) ?? null)),
    forgetEnded(request) {
      if (request.isAnswered && (request.isSettled || request.opened === null))
        requests.delete(request.received.requestId);
    },
    size: () => requests.size,
  };
}
