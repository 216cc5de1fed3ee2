/** Measures the gateway beside a bare proxy and a peer, interleaved, and writes the table into README.md. */
import { parseArgs } from "node:util";
import { startChild } from "./child.ts";
import { writeReport } from "./report.ts";
import {
  type Figures,
  runDirect,
  runManyStreams,
  runRound,
  type Stage,
  type Target,
} from "./round.ts";

const targets: readonly Target[] = [
  { name: "bare", file: "./targets/bare.ts", arguments: [], records: false },
  { name: "memory", file: "./targets/tollgate.ts", arguments: ["memory"], records: true },
  { name: "sqlite", file: "./targets/tollgate.ts", arguments: ["sqlite"], records: true },
  { name: "portkey", file: "./targets/portkey.ts", arguments: [], records: false },
];

/** Those of which it is measured what a thousand open streams take. */
const holdsStreams = ["bare", "memory", "sqlite"];

const { values } = parseArgs({
  options: {
    repeats: { type: "string", default: "3" },
    scale: { type: "string", default: "1" },
    targets: { type: "string", default: targets.map(({ name }) => name).join(",") },
    profile: { type: "string" },
    write: { type: "boolean", default: true },
  },
  allowNegative: true,
});

const repeats = within("repeats", values.repeats, 1, 20);
const scale = within("scale", values.scale, 0.1, 10);
const chosen = values.targets.split(",").map(targetNamed);

if (process.platform !== "linux")
  throw new Error("the bench reads CPU times from /proc and runs on Linux only");
const figures = await runAll();
const governs = chosen.some(({ records }) => records);
const inProcess = governs ? await runInProcess("./in-process.ts") : [];
const conversations = governs ? await runInProcess("./conversations.ts") : [];
await writeReport({
  targets: chosen,
  figures,
  inProcess,
  conversations,
  repeats,
  write: values.write,
});

async function runAll(): Promise<ReadonlyMap<string, readonly Figures[]>> {
  const upstream = startChild("./upstream.ts");
  const load = startChild("./load.ts");
  const { port } = await upstream.next<{ readonly port: number }>();
  const stage: Stage = {
    upstream,
    load,
    upstreamOrigin: `http://127.0.0.1:${port}`,
    scale,
    execArgv: values.profile ? ["--cpu-prof", `--cpu-prof-dir=${values.profile}`] : [],
  };
  const rounds = new Map<string, Figures[]>();
  try {
    for (let repeat = 1; repeat <= repeats; repeat += 1) {
      keep(rounds, "direct", await runDirect(stage, `direct-${repeat}`));
      for (const target of chosen) {
        const round = await runRound(stage, target, `${target.name}-${repeat}`);
        keep(rounds, target.name, round);
        console.error(`${repeat}/${repeats} ${target.name}: ${summary(round)}`);
      }
    }
    for (const target of chosen.filter(({ name }) => holdsStreams.includes(name)))
      keep(rounds, `many ${target.name}`, await runManyStreams(stage, target, "many"));
  } finally {
    await Promise.all([load.stop(), upstream.stop()]);
  }
  return rounds;
}

async function runInProcess(file: string): Promise<readonly Figures[]> {
  const rounds: Figures[] = [];
  for (let repeat = 1; repeat <= repeats; repeat += 1) {
    const child = startChild(file);
    rounds.push(await child.next<Figures>());
    await child.stop();
  }
  return rounds;
}

function keep(rounds: Map<string, Figures[]>, name: string, figures: Figures): void {
  rounds.set(name, [...(rounds.get(name) ?? []), figures]);
}

function summary(round: Figures): string {
  const names = ["plain req/s", "plain CPU µs/req", "burst CPU µs/event", "paced CPU µs/event"];
  return names.map((name) => `${name} ${round[name]?.toFixed(1)}`).join(", ");
}

function targetNamed(name: string): Target {
  const target = targets.find((candidate) => candidate.name === name);
  if (target) return target;
  throw new Error(
    `--targets knows ${targets.map((known) => known.name).join(", ")}, not "${name}"`,
  );
}

function within(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (value >= least && value <= most) return value;
  throw new Error(`--${name} is a number from ${least} to ${most}, not "${text}"`);
}
