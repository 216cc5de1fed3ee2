import { readFileSync } from "node:fs";

/** The unit of `/proc/<pid>/stat` on every Linux that Node runs on: 100 ticks in a second. */
const microsecondsPerTick = 10_000;

/**
 * User and system time of a process so far, in microseconds, as counted by the operating system. `withEnded` adds that
 * of ended children. 0 for a process that has ended.
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

/** The peak resident memory of a process so far, in megabytes. */
export function peakMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) / 1_024;
}
