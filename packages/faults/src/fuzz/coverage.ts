import type { BatchResult } from "./run-cases.ts";
import { generatorNames } from "./run-cases.ts";
import type { Surface } from "./surface.ts";

/** Everything that the cases of a surface reached so far. */
export interface Coverage {
  add(result: BatchResult): void;
  cases(): number;
  /** Lines of text for a person. */
  report(): readonly string[];
  /** The cells that are empty although the run was long enough; none for a short run. */
  problems(): readonly string[];
}

/** A kind of cells, and those of them that no case reached. */
interface Cells {
  readonly kind: string;
  readonly all: number;
  readonly empty: readonly string[];
}

export function createCoverage(surface: Surface): Coverage {
  let cases = 0;
  const codes: Record<string, number> = {};
  const paths: Record<string, number> = {};
  const uses: number[][] = generatorNames.map(() => []);

  const cells = (): readonly Cells[] => [
    {
      kind: "grammar rules",
      all: surface.grammar.rules.length,
      empty: surface.grammar.rules.filter((_, rule) => !uses[0]?.[rule]),
    },
    {
      kind: "mutations",
      all: uses[1]?.length ?? 0,
      empty: (uses[1] ?? []).flatMap((used, rule) => (used === 0 ? [`operator ${rule + 1}`] : [])),
    },
    {
      kind: "codes",
      all: surface.codes.length,
      empty: surface.codes.filter((code) => !codes[code]),
    },
    {
      kind: "paths",
      all: surface.paths.length,
      empty: surface.paths.filter((path) => !paths[path]),
    },
  ];

  return {
    cases: () => cases,
    add(result) {
      cases += result.cases;
      addAll(codes, result.codes);
      addAll(paths, result.paths);
      for (const [generator, used] of result.uses.entries())
        for (const [rule, times] of used.entries()) {
          const sums = uses[generator];
          if (sums) sums[rule] = (sums[rule] ?? 0) + times;
        }
    },
    report: () => [
      `${surface.name}: ${cases} cases`,
      ...cells()
        .filter(({ all }) => all > 0)
        .map(
          ({ kind, all, empty }) =>
            `  ${kind}: ${all - empty.length} of ${all}${empty.length === 0 ? "" : `, without ${empty.join(" ")}`}`,
        ),
      ...Object.entries(codes)
        .sort(([, one], [, other]) => other - one)
        .map(([code, times]) => `    ${code.padEnd(32)} ${times}`),
    ],
    problems: () =>
      cases < surface.enough
        ? []
        : cells()
            // Some members are dropped instead of rejected, so their paths are only reported.
            .filter(({ kind }) => kind !== "paths")
            .flatMap(({ kind, empty }) =>
              empty.map((cell) => `${surface.name}: no case reached ${cell} (${kind})`),
            ),
  };
}

function addAll(sums: Record<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [name, times] of Object.entries(more)) sums[name] = (sums[name] ?? 0) + times;
}
