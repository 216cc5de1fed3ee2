import type { GatewayEvent, Observer } from "@tollgate/core";

/** An observer that keeps events, and a way to wait for them. */
export interface EventLog {
  readonly observers: readonly Observer[];
  readonly seen: readonly GatewayEvent[];
  /** Resolves after this many events of a type (default 1). */
  seeing(type: GatewayEvent["type"], count?: number): Promise<void>;
  /** Resolves after a Step has settled, however long ago. */
  settled(stepId: string): Promise<void>;
}

export function eventLog(): EventLog {
  const seen: GatewayEvent[] = [];
  let waiting: { readonly isMet: () => boolean; readonly resolve: () => void }[] = [];
  const check = (): void => {
    for (const { isMet, resolve } of waiting) if (isMet()) resolve();
    waiting = waiting.filter(({ isMet }) => !isMet());
  };
  const until = (isMet: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      waiting.push({ isMet, resolve });
      check();
    });
  return {
    seen,
    observers: [
      (event) => {
        seen.push(event);
        check();
      },
    ],
    seeing: (type, count = 1) =>
      until(() => seen.filter((event) => event.type === type).length >= count),
    settled: (stepId) =>
      until(() => seen.some((event) => event.type === "step.settled" && event.stepId === stepId)),
  };
}
