import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { GatewayProcess } from "@tollgate/testing";
import { createSecrets } from "../load/keys.ts";
import type { DatabaseLocation } from "../stores/database-location.ts";
import { reportOf, sharedLimit, startRateProcesses } from "./run-load.ts";

/** How to measure the cost of a rate limit. */
export interface CostPlan {
  readonly clients: number;
  readonly processes: number;
  readonly rounds: number;
  readonly roundMs: number;
  readonly seed: number;
  /** The process id of the database server; null if the database runs in the gateway processes. */
  readonly server: number | null;
}

/** The load that one round served. */
export interface Round {
  readonly requestsPerSecond: number;
  /** Processor time of the gateway processes and of the database server, in milliseconds per request. */
  readonly cpuMs: number;
}

/** The rounds without a limit, and with one that all requests share and none exceeds. */
export interface CostResult {
  readonly without: readonly Round[];
  readonly with: readonly Round[];
}

/** Loads two sets of processes on one database in turns: one without a limit, one with a limit that all share. */
export async function measureCost(place: DatabaseLocation, plan: CostPlan): Promise<CostResult> {
  const secrets = await createSecrets(place, { organizationId: "acme", count: 4 });
  const plain = await startRateProcesses(place, { ...plan, rateLimits: [] });
  const limited = await startRateProcesses(place, { ...plan, rateLimits: [sharedLimit] });
  const result = { without: [] as Round[], with: [] as Round[] };
  // The first round of each set only warms it up.
  for (let round = 0; round <= plan.rounds; round++) {
    const inTurns = [
      [plain, result.without],
      [limited, result.with],
    ] as const;
    for (const [children, rounds] of round % 2 === 0 ? inTurns : inTurns.toReversed()) {
      const measured = await runRound(children, secrets, plan);
      if (round > 0) rounds.push(measured);
    }
  }
  await Promise.all([...plain, ...limited].map((child) => child.stop()));
  return result;
}

async function runRound(
  children: readonly GatewayProcess[],
  secrets: readonly string[],
  { clients, roundMs, server }: CostPlan,
): Promise<Round> {
  const count = Math.ceil(clients / children.length);
  const each = {
    secrets: Array.from({ length: count }, (_, client) => secrets[client % secrets.length]),
    models: Array.from({ length: count }, () => "answers-0"),
    pauseMs: 0,
  };
  const before = await totalOf(children, server);
  const started = performance.now();
  await Promise.all(children.map((child) => child.command("begin", each)));
  await pause(roundMs);
  await Promise.all(children.map((child) => child.command("end")));
  const seconds = (performance.now() - started) / 1_000;
  const after = await totalOf(children, server);
  if (after.wrong > 0) throw new Error(`${after.wrong} requests were rejected.`);
  const answered = after.answered - before.answered;
  return { requestsPerSecond: answered / seconds, cpuMs: (after.cpuMs - before.cpuMs) / answered };
}

async function totalOf(children: readonly GatewayProcess[], server: number | null) {
  const reports = await Promise.all(children.map(reportOf));
  return {
    answered: reports.reduce((sum, { answered }) => sum + answered, 0),
    wrong: reports.reduce((sum, { rejected, failed }) => sum + rejected + failed, 0),
    cpuMs:
      reports.reduce((sum, { cpuMs }) => sum + cpuMs, 0) +
      (server === null ? 0 : cpuOfServer(server)),
  };
}

/** Linux counts processor time in hundredths of a second. */
const tickMs = 10;

/** The processor time of a server, its processes and those that have ended, in milliseconds. */
function cpuOfServer(server: number): number {
  const ticks = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(statOf)
    .reduce((sum, stat) => {
      if (stat.pid === server) return sum + stat.own + stat.ended;
      return stat.parent === server ? sum + stat.own : sum;
    }, 0);
  return ticks * tickMs;
}

/** A line of `/proc/<pid>/stat`; the name in its second field may contain spaces. */
function statOf(pid: string) {
  let line = "";
  try {
    line = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    // The process has ended.
  }
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const number = (index: number): number => Number(fields[index] ?? 0);
  return {
    pid: Number(pid),
    parent: number(1),
    own: number(11) + number(12),
    ended: number(13) + number(14),
  };
}

/** The middle of some numbers. */
export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = 0, high = 0] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[middle]];
  return (low + high) / 2;
}
