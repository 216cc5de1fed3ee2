/** The Steps this process means to settle, for its lease and for a graceful end. */
export interface OpenSteps {
  readonly processId: string;
  /** How often the lease was renewed; a Step names it, so that one the lease no longer names is known to be given up. */
  renewal(): number;
  /** Counts a renewal that is about to be made, and what it names. */
  nextRenewal(): { readonly renewal: number; readonly steps: readonly StepProgress[] };
  /** Adds a Step, or what is now known of it; after `stopAll` it is stopped at once. */
  add(stepId: string, step: OpenStep): void;
  remove(stepId: string): void;
  /** Resolves when no Step is open. */
  idle(): Promise<void>;
  /** Ends every open Step as failed, and every one that opens later. */
  stopAll(): void;
}

/** A Step as its process sees it while it is open. */
export interface OpenStep {
  /** The output that what was seen so far tells; null while that says nothing of what it costs. */
  readonly outputTokens: () => number | null;
  readonly stop: () => void;
}

export interface StepProgress {
  readonly stepId: string;
  readonly outputTokens: number | null;
}

export function createOpenSteps(processId: string): OpenSteps {
  const open = new Map<string, OpenStep>();
  let renewals = 0;
  let isStopped = false;
  let waiting: (() => void)[] = [];
  return {
    processId,
    renewal: () => renewals,
    nextRenewal() {
      renewals++;
      const steps = [...open].map(([stepId, { outputTokens }]) => ({
        stepId,
        outputTokens: outputTokens(),
      }));
      return { renewal: renewals, steps };
    },
    add: (stepId, step) => {
      open.set(stepId, step);
      if (isStopped) step.stop();
    },
    remove(stepId) {
      open.delete(stepId);
      if (open.size > 0) return;
      for (const resolve of waiting) resolve();
      waiting = [];
    },
    idle: () =>
      open.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
    stopAll() {
      isStopped = true;
      for (const step of open.values()) step.stop();
    },
  };
}
