import { readFile, writeFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import type { Figures } from "./round.ts";
import { oneBusy, twoProcesses } from "./scenarios.ts";
import type { Target } from "./targets.ts";

type Rounds = ReadonlyMap<string, readonly Figures[]>;

interface Results {
  readonly targets: readonly Target[];
  readonly figures: Rounds;
  readonly inProcess: readonly Figures[];
  readonly conversations: readonly Figures[];
  readonly repeats: number;
  /** Whether the standard table was measured, and the names of the measured cells. */
  readonly hasStandard: boolean;
  readonly cells: readonly string[];
  /** Whether to replace the results in README.md. */
  readonly write: boolean;
}

const addedLatency = "alone added p50 ms";

type Row = readonly [figure: string, digits: number];

const rows: readonly Row[] = [
  ["cold start ms", 0],
  ["first start ms", 0],
  ["first 5 s CPU µs/req", 0],
  ["first 5 s req/s", 0],
  ["first 5 s p99 ms", 2],
  ["plain CPU µs/req", 0],
  ["plain req/s", 0],
  ["plain p50 ms", 2],
  ["plain p99 ms", 2],
  ["plain peak RSS MB", 0],
  ["plain server CPU µs/Step", 0],
  ["32 in flight server CPU µs/Step", 0],
  ["alone server CPU µs/Step", 0],
  [addedLatency, 2],
  ["burst CPU µs/event", 1],
  ["paced CPU µs/event", 1],
  ["paced first byte p50 ms", 1],
];

/** The figures of a cell, in this order. The report omits those that no target has. */
const cellFigures: readonly Row[] = [
  ["CPU µs/req", 0],
  ["server CPU µs/Step", 0],
  ["p50 ms", 2],
  ["p99 ms", 2],
  ["opening p50 ms", 2],
  ["503s", 0],
  ["CPU per Step, ratio to one", 2],
];

/** Prints the medians with their ratios, and writes them between the markers in README.md. */
export async function writeReport(results: Results): Promise<void> {
  const parts = {
    results: results.hasStandard ? standardText(results) : null,
    cells: results.cells.length > 0 ? cellsText(results) : null,
  };
  for (const text of Object.values(parts)) if (text !== null) console.log(`${text}\n`);
  if (!results.write) return;
  const readme = new URL("README.md", import.meta.url);
  let written = await readFile(readme, "utf8");
  for (const [name, text] of Object.entries(parts))
    if (text !== null) written = replaced(written, name, text);
  await writeFile(readme, written);
}

function replaced(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end ${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`bench/README.md has no markers for ${name}.`);
  return `${page.slice(0, from)}${begin}\n\n${text}\n\n${page.slice(to)}`;
}

function standardText(results: Results): string {
  return [
    machine(results.repeats),
    "",
    table(results, rows),
    inProcessLine(results),
    conversationsLine(results),
    manyStreamsLine(results),
  ].join("\n");
}

function cellsText(results: Results): string {
  const cellTargets = results.targets.filter(({ isPeer }) => !isPeer);
  const names = results.cells.flatMap((name) =>
    name === twoProcesses.name ? [oneBusy, name] : [name],
  );
  const cellRows = names.flatMap((cell) =>
    cellFigures.map(([figure, digits]): Row => [`${cell} ${figure}`, digits]),
  );
  return [machine(results.repeats), "", table({ ...results, targets: cellTargets }, cellRows)].join(
    "\n",
  );
}

function machine(repeats: number): string {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${cpu?.model}, ${memory} GB, Linux ${release()}, Node ${process.versions.node}; median of ${repeats} interleaved rounds; ratio to the bare proxy in brackets.`;
}

/** Omits rows in which no target has a figure. */
function table({ targets, figures }: Results, wanted: readonly Row[]): string {
  const head = ["", ...targets.map(({ name }) => name)];
  const lines = wanted
    .filter(([figure]) =>
      targets.some(({ name }) => !Number.isNaN(figureOf(figures, name, figure))),
    )
    .map(([figure, digits]) => [
      figure,
      ...targets.map(({ name }) => cell(figures, { name, figure, digits })),
    ]);
  const rule = head.map((_, column) => (column === 0 ? "---" : "--:"));
  return [head, rule, ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function cell(
  figures: Rounds,
  wanted: { readonly name: string; readonly figure: string; readonly digits: number },
): string {
  const value = figureOf(figures, wanted.name, wanted.figure);
  if (Number.isNaN(value)) return "–";
  const floor = figureOf(figures, "bare", wanted.figure);
  const text = value.toFixed(wanted.digits);
  // Added latency is already a difference. A ratio of it would mean nothing.
  return wanted.name === "bare" || wanted.figure === addedLatency || !(floor > 0)
    ? text
    : `${text} (${(value / floor).toFixed(2)}×)`;
}

function figureOf(figures: Rounds, name: string, figure: string): number {
  if (figure === addedLatency)
    return (
      median(figures.get(name) ?? [], "alone p50 ms") -
      median(figures.get("direct") ?? [], "alone p50 ms")
    );
  return median(figures.get(name) ?? [], figure);
}

function inProcessLine({ inProcess }: Results): string {
  if (inProcess.length === 0) return "";
  const [p50, p99] = ["p50 µs", "p99 µs"].map((name) => median(inProcess, name).toFixed(0));
  return `\nIn process (\`gateway.fetch\`, scripted provider, memory store): p50 ${p50} µs, p99 ${p99} µs per governed call.`;
}

function conversationsLine({ conversations }: Results): string {
  const lengths = Object.keys(conversations[0] ?? {});
  if (lengths.length === 0) return "";
  const times = lengths.map(
    (name) => `${name.split(" ")[0]}: ${median(conversations, name).toFixed(0)} µs`,
  );
  return `\nThe same with a recorded history, p50 by number of messages of 170 bytes: ${times.join(", ")}.`;
}

function manyStreamsLine({ figures, targets }: Results): string {
  const parts = targets.flatMap(({ name }) => {
    const rounds = figures.get(`many ${name}`);
    return rounds
      ? `${name} ${median(rounds, "peak RSS MB").toFixed(0)} MB, first byte p50 ${median(rounds, "first byte p50 ms").toFixed(1)} ms`
      : [];
  });
  return parts.length === 0
    ? ""
    : `\n1,000 streams at once, ten events a second each, in a separate process: ${parts.join("; ")}.`;
}

function median(rounds: readonly Figures[], figure: string): number {
  const values = rounds.flatMap((round) => round[figure] ?? []).sort((a, b) => a - b);
  const middle = Math.floor(values.length / 2);
  const upper = values[middle] ?? Number.NaN;
  return values.length % 2 === 1 ? upper : (upper + (values[middle - 1] ?? Number.NaN)) / 2;
}
