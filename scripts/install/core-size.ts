import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Tarball } from "./pack-packages.ts";

/** The size of `@tollgate/core`. */
export interface CoreSize {
  readonly unpackedBytes: number;
  readonly packedBytes: number;
  /** All its JavaScript as one gzip stream. */
  readonly gzipBytes: number;
  /** In a fresh process, with the files in the system's cache. It has no bound, because machines differ. */
  readonly importMs: number;
}

/** Tight bounds: raise one in the change that needs it. About 25 KB of the gzip bytes are zod's. */
const bounds = { unpackedBytes: 3_199_000, packedBytes: 760_000, gzipBytes: 195_900 } as const;

const imports = 7;

function importMs(directory: string): number {
  const program =
    'const from = performance.now(); await import("@tollgate/core"); console.log(performance.now() - from);';
  const times = Array.from({ length: imports }, () =>
    Number(
      execFileSync(process.execPath, ["--input-type=module", "--eval", program], {
        cwd: directory,
        encoding: "utf8",
        timeout: 20_000,
      }),
    ),
  ).sort((a, b) => a - b);
  return times[Math.floor(imports / 2)] ?? Number.NaN;
}

/** Measures the installed core. */
export function measureCore(directory: string, core: Tarball): CoreSize {
  const installed = join(directory, "node_modules", "@tollgate", "core", "dist");
  // Smallest first: most names are digests, and another order changes the result by up to 900 bytes.
  const code = globSync("**/*.js", { cwd: installed })
    .map((path) => readFileSync(join(installed, path)))
    .sort((one, other) => one.length - other.length);
  return {
    unpackedBytes: core.unpackedBytes,
    packedBytes: core.packedBytes,
    gzipBytes: gzipSync(Buffer.concat(code)).byteLength,
    importMs: importMs(directory),
  };
}

/** Lists the bounds that a size exceeds. */
export const coreSizeProblems = (size: CoreSize): readonly string[] =>
  (Object.keys(bounds) as (keyof typeof bounds)[])
    .filter((name) => !(size[name] <= bounds[name]))
    .map((name) => `${name} is ${size[name]}, over its bound of ${bounds[name]}`);
