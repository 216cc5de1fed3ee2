import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, startChild } from "./child.ts";
import type { Database } from "./database.ts";
import type { LoadOrder, LoadReport } from "./load-order.ts";
import { cpuMicroseconds, peakMegabytes } from "./process-figures.ts";
import {
  type Cell,
  cellsWarmUp,
  eventsPerStream,
  type Load,
  manyStreams,
  oneBusy,
  scenarios,
  twoProcesses,
} from "./scenarios.ts";
import type { Ready, Target, TargetOrder } from "./targets.ts";

/** Figures of one target in one round. */
export type Figures = Readonly<Record<string, number>>;

/** The upstream and the processes that all rounds share. */
export interface Stage {
  readonly upstream: Child;
  readonly upstreamOrigin: string;
  readonly load: Child;
  /** Null unless a target needs it. */
  readonly database: Database | null;
  /** Multiplies all times. */
  readonly scale: number;
  readonly execArgv: readonly string[];
}

/** One process of a target, or several that share a store, and the number of their answers. */
interface Running {
  readonly target: Target;
  readonly label: string;
  readonly children: readonly Child[];
  readonly order: Pick<LoadOrder, "origins" | "base" | "headers">;
  answers: number;
  unavailable: number;
}

/** The files of the processes in a round. */
interface Place {
  readonly label: string;
  /** A folder for Node's compile cache and for databases. */
  readonly folder: string;
}

/**
 * Runs a target through the standard scenarios in a separate process.
 * @throws Error if an answer is wrong, or the numbers of answers, upstream calls and records differ
 */
export function runRound(stage: Stage, target: Target, label: string): Promise<Figures> {
  return inFolder(stage, label, async (folder) => {
    const first = await start(stage, target, { label: `${label}-first`, folder });
    await first.child.stop();
    const cold = await start(stage, target, { label, folder });
    return whileRunning(stage, running(target, label, [cold]), async (one) => {
      const figures: Record<string, number> = {
        "cold start ms": cold.milliseconds,
        "first start ms": first.milliseconds,
      };
      for (const { name, databaseOnly = false, ...load } of scenarios) {
        if (databaseOnly && target.store !== "postgres") continue;
        Object.assign(figures, named(name, await measure(stage, one, load)));
        if (name === "plain") figures["plain peak RSS MB"] = peakMegabytes(cold.child.pid);
      }
      return figures;
    });
  });
}

/** Runs a target through cells in a separate process, which warms up before the first one. */
export function runCells(
  stage: Stage,
  target: Target,
  label: string,
  cells: readonly Cell[],
): Promise<Figures> {
  return inFolder(stage, label, async (folder) => {
    const started = await start(stage, target, { label, folder });
    return whileRunning(stage, running(target, label, [started]), async (one) => {
      await measure(stage, one, cellsWarmUp);
      const figures: Record<string, number> = {};
      for (const { name, keys = 0, observed = false, fails = false, ...load } of cells) {
        const order: TargetOrder = { order: "prepare", keys, observed };
        const secrets = (await started.child.ask<readonly string[] | null>(order)) ?? [];
        const more = { secrets, toleratesUnavailable: fails };
        Object.assign(figures, named(name, await measure(stage, one, load, more)));
      }
      return figures;
    });
  });
}

/** Runs two processes on one store, first with all requests to one of them, then with half to each. */
export function runTwoProcesses(stage: Stage, target: Target, label: string): Promise<Figures> {
  return inFolder(stage, label, async (folder) => {
    const first = await start(stage, target, { label, folder });
    const second = await start(stage, target, { label, folder }).catch(async (error) => {
      await first.child.stop();
      throw error;
    });
    return whileRunning(stage, running(target, label, [first, second]), async (both) => {
      await measure(stage, both, cellsWarmUp);
      const [origin = ""] = both.order.origins;
      const more = { toleratesUnavailable: true };
      const lone = await measure(stage, both, twoProcesses.lone, { ...more, origins: [origin] });
      const shared = await measure(stage, both, twoProcesses.both, more);
      return {
        ...named(twoProcesses.name, shared),
        ...named(oneBusy, lone),
        [`${twoProcesses.name} CPU per Step, ratio to one`]:
          (shared["CPU µs/req"] ?? Number.NaN) / (lone["CPU µs/req"] ?? Number.NaN),
      };
    });
  });
}

/** Keeps many streams open at once in a fresh process, and measures it. */
export function runManyStreams(stage: Stage, target: Target, label: string): Promise<Figures> {
  return inFolder(stage, label, async (folder) => {
    const started = await start(stage, target, { label, folder });
    return whileRunning(stage, running(target, label, [started]), async (one) => {
      await measure(stage, one, manyStreams.warmUp);
      const figures = await measure(stage, one, manyStreams.streams);
      return { ...figures, "peak RSS MB": peakMegabytes(started.child.pid) };
    });
  });
}

/** The time of one request at a time without any gateway. */
export async function runDirect(stage: Stage, label: string): Promise<Figures> {
  const order = { origins: [stage.upstreamOrigin], base: `/${label}/v1`, headers: jsonOnly };
  const alone = scenarios.find(({ name }) => name === "alone");
  if (alone === undefined) throw new Error("No scenario sends one request at a time.");
  await ask(stage, { ...order, ...alone, seconds: alone.warmUpSeconds });
  const report = await ask(stage, { ...order, ...alone });
  return { "alone p50 ms": report.p50 };
}

const jsonOnly = { "content-type": "application/json" };

async function inFolder(
  stage: Stage,
  label: string,
  work: (folder: string) => Promise<Figures>,
): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-bench-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
    await stage.database?.drop(schemaOf(label));
    await stage.database?.drop(schemaOf(`${label}-first`));
  }
}

const schemaOf = (label: string): string => `bench_${label.replace(/\W/g, "_")}`;

/** Starts a target and reads its first answer. Node's compile cache is in the folder, as under `tollgate serve`. */
async function start(stage: Stage, target: Target, { label, folder }: Place) {
  const started = performance.now();
  const child = startChild(target.file, {
    arguments: target.store === null ? [] : [target.store],
    execArgv: stage.execArgv,
    env: {
      BENCH_UPSTREAM: `${stage.upstreamOrigin}/${label}/v1`,
      BENCH_DATABASE:
        target.store === "postgres" ? (stage.database?.url ?? "") : join(folder, `${label}.db`),
      BENCH_SCHEMA: schemaOf(label),
      NODE_COMPILE_CACHE: join(folder, "compiled"),
    },
  });
  try {
    const { origin, headers } = await child.next<Ready>();
    const order = { origins: [origin], base: "/v1", headers: { ...jsonOnly, ...headers } };
    const { workload } = cellsWarmUp;
    await ask(stage, { ...order, workload, concurrency: 1, seconds: 0 });
    return { child, order, milliseconds: performance.now() - started };
  } catch (error) {
    await child.stop();
    throw error;
  }
}

function running(
  target: Target,
  label: string,
  started: readonly Awaited<ReturnType<typeof start>>[],
): Running {
  const origins = started.flatMap(({ order }) => order.origins);
  const [{ order } = { order: { base: "", headers: {} } }] = started;
  // Each process has sent its first answer.
  const counts = { answers: started.length, unavailable: 0 };
  const children = started.map(({ child }) => child);
  return { target, label, children, order: { ...order, origins }, ...counts };
}

async function whileRunning(
  stage: Stage,
  processes: Running,
  work: (processes: Running) => Promise<Figures>,
): Promise<Figures> {
  try {
    const figures = await work(processes);
    await compareCounts(stage, processes);
    return figures;
  } finally {
    await Promise.all(processes.children.map((child) => child.stop()));
  }
}

async function measure(
  stage: Stage,
  processes: Running,
  load: Load,
  more: Partial<Pick<LoadOrder, "origins" | "secrets" | "toleratesUnavailable">> = {},
): Promise<Figures> {
  const order = { ...processes.order, ...load, ...more };
  if (load.warmUpSeconds > 0)
    count(processes, await ask(stage, { ...order, seconds: load.warmUpSeconds }));
  const own = () => processes.children.reduce((sum, { pid }) => sum + cpuMicroseconds(pid), 0);
  const servers = () => stage.database?.cpuMicroseconds() ?? 0;
  const before = { own: own(), server: servers() };
  const report = await ask(stage, order);
  const spent = { own: own() - before.own, server: servers() - before.server };
  count(processes, report);
  const cpu = spent.own / report.answers;
  return {
    "req/s": report.answers / report.seconds,
    "CPU µs/req": cpu,
    "CPU µs/event": cpu / eventsPerStream,
    "p50 ms": report.p50,
    "p99 ms": report.p99,
    "opening p50 ms": report.openingP50,
    "first byte p50 ms": report.firstByteP50,
    ...(more.toleratesUnavailable === true && { "503s": report.unavailable }),
    ...(processes.target.store === "postgres" && {
      "server CPU µs/Step": spent.server / report.answers,
    }),
  };
}

function count(processes: Running, report: LoadReport): void {
  processes.answers += report.answers;
  processes.unavailable += report.unavailable;
}

type Asked = Pick<
  LoadOrder,
  "origins" | "base" | "headers" | "workload" | "concurrency" | "seconds"
> &
  Partial<LoadOrder>;

async function ask(stage: Stage, asked: Asked): Promise<LoadReport> {
  const order: LoadOrder = {
    secrets: [],
    spreadSeconds: 0,
    toleratesUnavailable: false,
    ...asked,
    seconds: asked.seconds * stage.scale,
  };
  const report = await stage.load.ask<LoadReport>(order);
  if (report.wrong.length > 0)
    throw new Error(
      `${report.wrong.length} wrong answers:\n${report.wrong.slice(0, 10).join("\n")}`,
    );
  return report;
}

function named(name: string, figures: Figures): Figures {
  return Object.fromEntries(
    Object.entries(figures).map(([figure, value]) => [`${name} ${figure}`, value]),
  );
}

/** A request with status 503 may have a record, but no answer from the upstream. */
async function compareCounts(stage: Stage, processes: Running): Promise<void> {
  const { target, label, answers, unavailable } = processes;
  const calls = (await stage.upstream.ask<Record<string, number>>("counts"))[label];
  const order: TargetOrder = { order: "records" };
  const records = (await processes.children[0]?.ask<number | null>(order)) ?? answers;
  if (calls === answers && records >= answers && records <= answers + unavailable) return;
  throw new Error(
    `${target.name}: ${answers} answers, ${calls} upstream calls, ${records} records, ${unavailable} times 503`,
  );
}
