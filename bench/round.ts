import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, startChild } from "./child.ts";
import type { LoadOrder, LoadReport } from "./load-order.ts";
import { cpuMicroseconds, peakMegabytes } from "./process-figures.ts";
import { eventsPerStream, type Model, manyStreams, type Scenario, scenarios } from "./scenarios.ts";

/** What is measured: a process that stands between the load and the upstream, or nothing at all. */
export interface Target {
  readonly name: string;
  readonly file: string;
  readonly arguments: readonly string[];
  /** Whether it keeps a record of each answer. */
  readonly records: boolean;
}

/** Figures of one target in one round. */
export type Figures = Readonly<Record<string, number>>;

/** Where answers come from, and the two processes that every round shares. */
export interface Stage {
  readonly upstream: Child;
  readonly upstreamOrigin: string;
  readonly load: Child;
  /** Multiplies all times. */
  readonly scale: number;
  readonly execArgv: readonly string[];
}

interface Ready {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A system prompt that makes a request about 1 KB. */
const prompt = "You answer briefly, and only what was asked. ".repeat(20);

/**
 * Runs a target through all scenarios in a process of its own.
 * @throws when an answer is wrong, or answers, upstream calls and records are not the same number.
 */
export async function runRound(stage: Stage, target: Target, label: string): Promise<Figures> {
  const compileCache = mkdtempSync(join(tmpdir(), "tollgate-bench-cache-"));
  const first = await start(stage, target, { label: `${label}-first`, compileCache });
  await first.child.stop();
  const cold = await start(stage, target, { label, compileCache });
  const { child, order } = cold;
  try {
    let { answers } = cold;
    const figures: Record<string, number> = {
      "cold start ms": cold.milliseconds,
      "first start ms": first.milliseconds,
    };
    for (const scenario of scenarios) {
      const warmUp = await measure(stage, child, scenario, order, scenario.warmUpSeconds);
      const measured = await measure(stage, child, scenario, order, scenario.seconds);
      answers += warmUp.answers + measured.answers;
      Object.assign(figures, named(scenario, measured.figures));
      if (scenario.name === "plain") figures["plain peak RSS MB"] = peakMegabytes(child.pid);
    }
    figures["peak RSS MB"] = peakMegabytes(child.pid);
    await compareCounts(stage, {
      target,
      label,
      answers,
      records: await child.ask<number | null>("records"),
    });
    return figures;
  } finally {
    await child.stop();
    rmSync(compileCache, { recursive: true });
  }
}

/** Starts a target and takes its first answer. Node keeps what it compiled in the folder, as `tollgate` has it. */
async function start(
  stage: Stage,
  target: Target,
  { label, compileCache }: { readonly label: string; readonly compileCache: string },
) {
  const started = performance.now();
  const child = startChild(target.file, {
    arguments: target.arguments,
    execArgv: stage.execArgv,
    env: {
      BENCH_UPSTREAM: `${stage.upstreamOrigin}/${label}/v1`,
      NODE_COMPILE_CACHE: compileCache,
    },
  });
  try {
    const order = orderFor(await child.next<Ready>(), "/v1/chat/completions");
    const { answers } = await ask(stage, { ...order("plain"), seconds: 0 });
    return { child, order, answers, milliseconds: performance.now() - started };
  } catch (error) {
    await child.stop();
    throw error;
  }
}

/** Holds many streams open at once in a fresh process, and says what that takes. */
export async function runManyStreams(
  stage: Stage,
  target: Target,
  label: string,
): Promise<Figures> {
  const child = startChild(target.file, {
    arguments: target.arguments,
    env: { BENCH_UPSTREAM: `${stage.upstreamOrigin}/${label}/v1` },
  });
  try {
    const ready = await child.next<Ready>();
    const order = orderFor(ready, "/v1/chat/completions");
    const { concurrency, spreadSeconds, model, warmUp } = manyStreams;
    await ask(stage, { ...order(warmUp.model), ...warmUp, seconds: warmUp.seconds * stage.scale });
    const report = await ask(stage, { ...order(model), concurrency, spreadSeconds, seconds: 0 });
    return {
      "first byte p50 ms": report.firstByteP50,
      "peak RSS MB": peakMegabytes(child.pid),
    };
  } finally {
    await child.stop();
  }
}

/** The time of one request at a time without any gateway. */
export async function runDirect(stage: Stage, label: string): Promise<Figures> {
  const order = orderFor({ origin: stage.upstreamOrigin, headers: {} }, `/${label}/v1/chat`);
  await ask(stage, { ...order("plain"), seconds: 0.2 * stage.scale });
  const report = await ask(stage, {
    ...order("plain"),
    seconds: 1.5 * stage.scale,
  });
  return { "alone p50 ms": report.p50 };
}

function orderFor(ready: Ready, path: string) {
  return (model: Model) => ({
    origin: ready.origin,
    path,
    headers: { "content-type": "application/json", ...ready.headers },
    model,
    prompt,
    concurrency: 1,
    spreadSeconds: 0,
  });
}

async function measure(
  stage: Stage,
  child: Child,
  scenario: Scenario,
  order: ReturnType<typeof orderFor>,
  seconds: number,
): Promise<{ readonly answers: number; readonly figures: Figures }> {
  const before = cpuMicroseconds(child.pid);
  const { concurrency, spreadSeconds } = scenario;
  const report = await ask(stage, {
    ...order(scenario.model),
    concurrency,
    spreadSeconds,
    seconds: seconds * stage.scale,
  });
  const cpu = (cpuMicroseconds(child.pid) - before) / report.answers;
  return {
    answers: report.answers,
    figures: {
      "req/s": report.answers / report.seconds,
      "CPU µs/req": cpu,
      "CPU µs/event": cpu / eventsPerStream,
      "p50 ms": report.p50,
      "p99 ms": report.p99,
      "first byte p50 ms": report.firstByteP50,
    },
  };
}

async function ask(stage: Stage, order: LoadOrder): Promise<LoadReport> {
  const report = await stage.load.ask<LoadReport>(order);
  if (report.wrong.length > 0) throw new Error(`wrong answers:\n${report.wrong.join("\n")}`);
  return report;
}

function named(scenario: Scenario, figures: Figures): Figures {
  return Object.fromEntries(
    Object.entries(figures).map(([name, value]) => [`${scenario.name} ${name}`, value]),
  );
}

async function compareCounts(
  stage: Stage,
  round: {
    readonly target: Target;
    readonly label: string;
    readonly answers: number;
    readonly records: number | null;
  },
): Promise<void> {
  const counts = await stage.upstream.ask<Record<string, number>>("counts");
  const calls = counts[round.label];
  const records = round.target.records ? round.records : round.answers;
  if (calls === round.answers && records === round.answers) return;
  throw new Error(
    `${round.target.name}: ${round.answers} answers, ${calls} upstream calls, ${records} records`,
  );
}
