import { readFileSync } from "node:fs";

/** The longest times for which the event loop did nothing else, in milliseconds. */
export interface Delay {
  /** Without the time that the system gave to other processes. */
  readonly time: number;
  /** CPU time alone: the same on a busy machine. */
  readonly cpu: number;
}

const tickMs = 1;

/**
 * Watches the event loop of this thread: a timer looks every millisecond, and what it finds missing was spent without a turn of
 * the event loop. Stop it, or the process doesn't end.
 */
export class DelayWatch {
  #longest: Delay = { time: 0, cpu: 0 };
  #last = now();
  readonly #timer = setInterval(() => this.#look(), tickMs);

  /** The longest since the last call. */
  take(): Delay {
    this.#look();
    const longest = this.#longest;
    this.#longest = { time: 0, cpu: 0 };
    return longest;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const [last, at] = [this.#last, now()];
    this.#last = at;
    const { time, cpu } = this.#longest;
    this.#longest = {
      time: Math.max(time, at.time - last.time - (at.waited - last.waited) - tickMs),
      cpu: Math.max(cpu, at.cpu - last.cpu),
    };
  }
}

function now(): { readonly time: number; readonly cpu: number; readonly waited: number } {
  const { user, system } = process.threadCpuUsage();
  return { time: performance.now(), cpu: (user + system) / 1_000, waited: waitedMs() };
}

/** How long this thread was ready to run, but had no processor. Only Linux tells. */
function waitedMs(): number {
  try {
    return Number(readFileSync("/proc/thread-self/schedstat", "latin1").split(" ")[1]) / 1e6;
  } catch {
    return 0;
  }
}

/** Describes a delay in a line of a report. */
export function describeDelay({ time, cpu }: Delay): string {
  return `event loop held up for ${time.toFixed(1)} ms (${cpu.toFixed(1)} ms CPU)`;
}
