import type { GatewayEvent } from "@tollgate/core";

/** What observers were told. */
export interface Journal {
  readonly events: readonly GatewayEvent[];
  note(event: GatewayEvent): void;
  /** Resolves when so many Steps have been settled since it began. */
  settled(steps: number): Promise<void>;
}

/** Keeps what observers are told, and waits for settlements. */
export function createJournal(): Journal {
  const events: GatewayEvent[] = [];
  let waiting: { readonly steps: number; readonly resolve: () => void }[] = [];
  const count = (): number => events.filter(({ type }) => type === "step.settled").length;
  return {
    events,
    note(event: GatewayEvent): void {
      events.push(event);
      const due = waiting.filter(({ steps }) => steps <= count());
      waiting = waiting.filter(({ steps }) => steps > count());
      for (const { resolve } of due) resolve();
    },
    settled: (steps: number): Promise<void> =>
      count() >= steps
        ? Promise.resolve()
        : new Promise((resolve) => waiting.push({ steps, resolve })),
  };
}
