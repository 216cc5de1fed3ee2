/** Measures the gateway, a bare proxy and other gateways in turn, and writes the tables into README.md. */
import { parseArgs } from "node:util";
import { startChild } from "./child.ts";
import { startDatabase } from "./database.ts";
import { writeReport } from "./report.ts";
import {
  type Figures,
  runCells,
  runDirect,
  runManyStreams,
  runRound,
  runTwoProcesses,
  type Stage,
} from "./round.ts";
import { cells, twoProcesses } from "./scenarios.ts";
import { type Target, targets } from "./targets.ts";

const standard = "standard";
const cellNames = [standard, ...cells.map(({ name }) => name), twoProcesses.name];

const { values } = parseArgs({
  options: {
    repeats: { type: "string", default: "3" },
    scale: { type: "string", default: "1" },
    targets: { type: "string", default: targets.map(({ name }) => name).join(",") },
    cells: { type: "string", default: standard },
    profile: { type: "string" },
    write: { type: "boolean", default: true },
  },
  allowNegative: true,
});

const repeats = within("repeats", values.repeats, 1, 20);
const scale = within("scale", values.scale, 0.02, 10);
const chosen = chosenOf("targets", values.targets, targets);
const asked = values.cells === "all" ? cellNames : chosenNames("cells", values.cells, cellNames);
const chosenCells = cells.filter(({ name }) => asked.includes(name));

if (process.platform !== "linux")
  throw new Error("The bench reads CPU times from /proc, so it runs only on Linux.");
const figures = await runAll();
const runsInProcess = asked.includes(standard) && chosen.some(({ store }) => store !== null);
const inProcess = runsInProcess ? await runInProcess("./in-process.ts") : [];
const conversations = runsInProcess ? await runInProcess("./conversations.ts") : [];
await writeReport({
  targets: chosen,
  figures,
  inProcess,
  conversations,
  repeats,
  hasStandard: asked.includes(standard),
  cells: asked.filter((name) => name !== standard),
  write: values.write,
});

async function runAll(): Promise<ReadonlyMap<string, readonly Figures[]>> {
  const upstream = startChild("./upstream.ts");
  const load = startChild("./load.ts");
  const { port } = await upstream.next<{ readonly port: number }>();
  const needsDatabase = chosen.some(({ store }) => store === "postgres");
  const database = needsDatabase ? await startDatabase() : null;
  const stage: Stage = {
    upstream,
    load,
    upstreamOrigin: `http://127.0.0.1:${port}`,
    database,
    scale,
    execArgv: values.profile ? ["--cpu-prof", `--cpu-prof-dir=${values.profile}`] : [],
  };
  const rounds = new Map<string, Figures[]>();
  try {
    for (let repeat = 1; repeat <= repeats; repeat += 1) {
      keep(rounds, "direct", await runDirect(stage, `direct-${repeat}`));
      for (const target of chosen) await runTarget(stage, target, repeat, rounds);
    }
    if (asked.includes(standard))
      for (const target of chosen.filter(({ isPeer, store }) => !isPeer && store !== "postgres"))
        keep(
          rounds,
          `many ${target.name}`,
          await runManyStreams(stage, target, `many-${target.name}`),
        );
  } finally {
    await Promise.all([load.stop(), upstream.stop(), database?.stop()]);
  }
  return rounds;
}

/** Measures one target in one round. Each part starts fresh processes. */
async function runTarget(
  stage: Stage,
  target: Target,
  repeat: number,
  rounds: Map<string, Figures[]>,
): Promise<void> {
  const label = `${target.name}-${repeat}`;
  const parts: Figures[] = [];
  if (asked.includes(standard)) parts.push(await runRound(stage, target, label));
  if (chosenCells.length > 0 && !target.isPeer)
    parts.push(await runCells(stage, target, `${label}-cells`, chosenCells));
  const sharesStore = target.store === "sqlite" || target.store === "postgres";
  if (asked.includes(twoProcesses.name) && sharesStore)
    parts.push(await runTwoProcesses(stage, target, `${label}-two`));
  const round: Figures = Object.assign({}, ...parts);
  keep(rounds, target.name, round);
  console.error(`${repeat}/${repeats} ${target.name}: ${summary(round)}`);
}

async function runInProcess(file: string): Promise<readonly Figures[]> {
  const rounds: Figures[] = [];
  for (let repeat = 1; repeat <= repeats; repeat += 1) {
    const child = startChild(file, { arguments: [String(scale)] });
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
  const cellFigures = asked.map((name) => `${name} CPU µs/req`);
  return [...names, ...cellFigures]
    .filter((name) => round[name] !== undefined)
    .map((name) => `${name} ${round[name]?.toFixed(1)}`)
    .join(", ");
}

function chosenOf<Named extends { readonly name: string }>(
  option: string,
  text: string,
  known: readonly Named[],
): readonly Named[] {
  const names = chosenNames(
    option,
    text,
    known.map(({ name }) => name),
  );
  return names.flatMap((name) => known.filter((one) => one.name === name));
}

function chosenNames(option: string, text: string, known: readonly string[]): readonly string[] {
  const names = text.split(",");
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return names;
  throw new Error(`Unknown --${option}: ${unknown}. Use any of ${known.join(", ")}.`);
}

function within(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (value >= min && value <= max) return value;
  throw new Error(`--${name} must be a number from ${min} to ${max}, not ${text}.`);
}
