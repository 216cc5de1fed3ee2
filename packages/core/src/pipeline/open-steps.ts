import { createInFlight } from "../kernel/in-flight.ts";

/** The Steps that this process still has to settle. Its lease names them, and closing waits for them. */
export interface OpenSteps {
  readonly processId: string;
  /**
   * The number of lease renewals so far. Each Step records it: recovery takes over Steps that a later renewal omits.
   */
  renewal(): number;
  /** Counts the next renewal. Returns its number and the Steps that it names. */
  nextRenewal(): { readonly renewal: number; readonly steps: readonly StepProgress[] };
  add(organizationId: string, stepId: string): OpenStep;
  count(): number;
  /** Resolves when no Step is open. */
  idle(): Promise<void>;
  /** Ends every open Step as failed, and every Step that opens later. */
  stopAll(): void;
}

/** The entry of an open Step. */
export interface OpenStep {
  /** Sets how to measure and stop the Step. After `stopAll`, stops it at once. */
  runs(running: StepControl): void;
  /** This process no longer settles the Step. Safe to call twice. */
  remove(): void;
}

interface StepControl {
  /** The output tokens so far; null while they can't be known from the events seen. */
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
    count: open.count,
    idle: () =>
      open.count() === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
    stopAll() {
      isStopped = true;
      for (const { running } of open.all()) running?.stop();
    },
  };
}
