/** The resources of a process at a moment. */
export interface Sample {
  /** Seconds since the start. */
  readonly at: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly descriptors: number;
}

/** The names of the figures that a plot shows, their units, and their colors. */
const figures = [
  { name: "rssBytes", label: "resident memory, MB", unit: 1_000_000, color: "#1f77b4" },
  { name: "heapBytes", label: "heap, MB", unit: 1_000_000, color: "#2ca02c" },
  { name: "descriptors", label: "descriptors", unit: 1, color: "#d62728" },
] as const;

const width = 800;
const height = 140;
const margin = 40;

/** Draws one chart per figure, with a line per process, as an SVG image. */
export function plot(title: string, processes: readonly (readonly Sample[])[]): string {
  const seconds = Math.max(1, ...processes.flat().map(({ at }) => at));
  const charts = figures.map(({ name, label, unit, color }, chart) => {
    const max = Math.max(1, ...processes.flat().map((sample) => sample[name] / unit));
    const top = 30 + chart * (height + margin);
    const lines = processes.map((samples, number) => {
      const points = samples.map((sample) => {
        const x = margin + (sample.at / seconds) * (width - 2 * margin);
        const y = top + height - (sample[name] / unit / max) * height;
        return `${x.toFixed(1)},${y.toFixed(1)}`;
      });
      const dashes = number === 0 ? "" : ' stroke-dasharray="4 3"';
      return `<polyline fill="none" stroke="${color}"${dashes} points="${points.join(" ")}"/>`;
    });
    return [
      `<text x="${margin}" y="${top - 4}">${label}: at most ${max.toFixed(0)}</text>`,
      `<path fill="none" stroke="#999" d="M${margin} ${top}V${top + height}H${width - margin}"/>`,
      ...lines,
    ].join("\n");
  });
  const whole = 40 + figures.length * (height + margin);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${whole}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${whole}" fill="#fff"/>`,
    `<text x="${margin}" y="14">${title} (${seconds.toFixed(0)} s)</text>`,
    ...charts,
    "</svg>\n",
  ].join("\n");
}

const bounds = {
  rssBytes: { share: 1.05, allowance: 32_000_000 },
  descriptors: { share: 1.05, allowance: 16 },
} as const;

/**
 * Lists the figures that grew by more than 5 % and an allowance, from the second quarter of a life to the last one. The
 * allowance is 32 MB for remembered conversations, which fill up slowly, and 16 descriptors for idle connections.
 */
export function growthProblems(samples: readonly Sample[]): readonly string[] {
  const quarter = Math.floor(samples.length / 4);
  if (quarter < 2) return [];
  return (["rssBytes", "descriptors"] as const).flatMap((name) => {
    const before = median(samples.slice(quarter, 2 * quarter).map((sample) => sample[name]));
    const after = median(samples.slice(-quarter).map((sample) => sample[name]));
    const { share, allowance } = bounds[name];
    return after <= before * share + allowance ? [] : [`${name} grew from ${before} to ${after}`];
  });
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0;
}
