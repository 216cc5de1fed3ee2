import { readFile, writeFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import type { Figures, Target } from "./round.ts";

type Rounds = ReadonlyMap<string, readonly Figures[]>;

interface Results {
  readonly targets: readonly Target[];
  readonly figures: Rounds;
  readonly inProcess: readonly Figures[];
  readonly conversations: readonly Figures[];
  readonly repeats: number;
  /** Whether to replace the results in README.md. */
  readonly write: boolean;
}

const addedLatency = "alone added p50 ms";

const rows: readonly (readonly [figure: string, digits: number])[] = [
  ["plain CPU µs/req", 0],
  ["plain req/s", 0],
  ["plain p50 ms", 2],
  ["plain p99 ms", 2],
  ["plain peak RSS MB", 0],
  [addedLatency, 2],
  ["burst CPU µs/event", 1],
  ["paced CPU µs/event", 1],
  ["paced first byte p50 ms", 1],
  ["cold start ms", 0],
  ["first start ms", 0],
];

/** Prints the medians with their ratios, and puts them between the markers of README.md. */
export async function writeReport(results: Results): Promise<void> {
  const text = [
    machine(results.repeats),
    "",
    table(results),
    inProcessLine(results),
    conversationsLine(results),
    manyStreamsLine(results),
  ].join("\n");
  console.log(text);
  if (!results.write) return;
  const readme = new URL("README.md", import.meta.url);
  const [before, after] = (await readFile(readme, "utf8")).split(
    /<!-- results -->[\s\S]*<!-- end -->/,
  );
  if (before === undefined || after === undefined)
    throw new Error("bench/README.md has no place for results");
  await writeFile(readme, `${before}<!-- results -->\n\n${text}\n\n<!-- end -->${after}`);
}

function machine(repeats: number): string {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${cpu?.model}, ${memory} GB, Linux ${release()}, Node ${process.versions.node}; median of ${repeats} interleaved rounds; in brackets the ratio to the bare proxy.`;
}

function table({ targets, figures }: Results): string {
  const head = ["", ...targets.map(({ name }) => name)];
  const lines = rows.map(([figure, digits]) => [
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
  const floor = figureOf(figures, "bare", wanted.figure);
  const text = value.toFixed(wanted.digits);
  // What is added is a difference already: its ratio to almost nothing says nothing.
  return wanted.name === "bare" || wanted.figure === addedLatency || Number.isNaN(floor)
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
  return `\nThe same with a history of so many messages of 170 bytes, which its Session has: p50 ${times.join(", ")}.`;
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
    : `\n1,000 streams at once, ten events a second each, in a process of their own: ${parts.join("; ")}.`;
}

function median(rounds: readonly Figures[], figure: string): number {
  const values = rounds.flatMap((round) => round[figure] ?? []).sort((a, b) => a - b);
  const middle = Math.floor(values.length / 2);
  const upper = values[middle] ?? Number.NaN;
  return values.length % 2 === 1 ? upper : (upper + (values[middle - 1] ?? Number.NaN)) / 2;
}
