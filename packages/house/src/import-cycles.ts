import { posix } from "node:path";
import type { SourceFile } from "./source-file.ts";

/** The import cycles among files, each as `a.ts → b.ts → a.ts`. Relative imports only; types count. */
export function importCycles(files: readonly SourceFile[]): readonly string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const finished = new Set<string>();
  const cycles: string[] = [];

  const walk = (file: SourceFile, trail: readonly string[]): void => {
    const start = trail.indexOf(file.path);
    if (start !== -1) {
      cycles.push([...trail.slice(start), file.path].join(" → "));
      return;
    }
    if (finished.has(file.path)) return;
    for (const specifier of file.imports) {
      const next = byPath.get(posix.join(posix.dirname(file.path), specifier));
      if (next !== undefined && specifier.startsWith(".")) walk(next, [...trail, file.path]);
    }
    finished.add(file.path);
  };

  for (const file of files) walk(file, []);
  return cycles;
}
