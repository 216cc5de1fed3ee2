import { readFileSync } from "node:fs";

/** The unit of `/proc/<pid>/stat` on every Linux that Node runs on: 100 ticks in a second. */
const microsecondsPerTick = 10_000;

/** User and system time that a process has taken so far, in microseconds, as the operating system counts it. */
export function cpuMicroseconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * microsecondsPerTick;
}

/** The most memory a process has had resident so far, in megabytes. */
export function peakMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) / 1_024;
}
