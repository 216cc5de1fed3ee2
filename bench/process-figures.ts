import { readFileSync } from "node:fs";

/** The unit of `/proc/<pid>/stat` on every Linux that Node runs on: 100 ticks in a second. */
const microsecondsPerTick = 10_000;

/**
 * User and system time that a process has taken so far, in microseconds, as the operating system counts it; `withEnded`
 * adds that of its children that have ended. 0 for a process that is gone.
 */
export function cpuMicroseconds(pid: number, { withEnded = false } = {}): number {
  const stat = statOf(pid);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, withEnded ? 15 : 13).map(Number);
  return ticks.reduce((sum, value) => sum + value, 0) * microsecondsPerTick;
}

function statOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return "";
  }
}

/** The most memory a process has had resident so far, in megabytes. */
export function peakMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) / 1_024;
}
