import { createInFlight } from "../kernel/in-flight.ts";

/** The Steps this process means to settle, for its lease and for a graceful end. */
export interface OpenSteps {
  readonly processId: string;
  /** How often the lease was renewed; a Step names it, so that one the lease no longer names is known to be given up. */
  renewal(): number;
  /** Counts a renewal that is about to be made, and what it names. */
  nextRenewal(): { readonly renewal: number; readonly steps: readonly StepProgress[] };
  add(organizationId: string, stepId: string): OpenStep;
  /** Resolves when no Step is open. */
  idle(): Promise<void>;
  /** Ends every open Step as failed, and every one that opens later. */
  stopAll(): void;
}

/** A Step as its process has it open. */
export interface OpenStep {
  /** Tells how to follow and to stop it; after `stopAll` it is stopped at once. */
  runs(running: StepControl): void;
  /** The process does not mean to settle it any more. Safe to call twice. */
  remove(): void;
}

interface StepControl {
  /** The output that what was seen so far tells; null while that says nothing of what it costs. */
  readonly outputTokens: () => number | null;
  readonly stop: () => void;
}

interface StepProgress {
  readonly organizationId: string;
  readonly stepId: string;
  readonly outputTokens: number | null;
}

interface Entry {
  readonly organizationId: string;
  readonly stepId: string;
  running: StepControl | null;
}

export function createOpenSteps(processId: string): OpenSteps {
  const open = createInFlight<Entry>();
  let renewals = 0;
  let isStopped = false;
  let waiting: (() => void)[] = [];
  return {
    processId,
    renewal: () => renewals,
    nextRenewal() {
      renewals++;
      const steps = open.all().map(({ organizationId, stepId, running }) => ({
        organizationId,
        stepId,
        outputTokens: running?.outputTokens() ?? null,
      }));
      return { renewal: renewals, steps };
    },
    add(organizationId, stepId) {
      const entry: Entry = { organizationId, stepId, running: null };
      let slot: number | null = open.add(entry);
      return {
        runs(running) {
          entry.running = running;
          if (isStopped) running.stop();
        },
        remove() {
          if (slot === null) return;
          open.remove(slot);
          slot = null;
          if (open.count() > 0) return;
          for (const resolve of waiting) resolve();
          waiting = [];
        },
      };
    },
    idle: () =>
      open.count() === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
    stopAll() {
      isStopped = true;
      for (const { running } of open.all()) running?.stop();
    },
  };
}
