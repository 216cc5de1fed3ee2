import { posix } from "node:path";
import type { SourceFile } from "./source-file.ts";

/** Lists the imports of a file in core that go up, or sideways to another module. Type imports count. */
export function layerProblems(file: SourceFile): readonly string[] {
  const module = moduleOf(file.path);
  const own = layerOf(module);
  if (own === undefined) return [`${file.path}: the module ${module}/ has no layer`];
  return file.imports
    .filter((specifier) => specifier.startsWith("."))
    .flatMap((specifier) => {
      const target = posix.join(posix.dirname(file.path), specifier);
      if (!target.startsWith(source)) return [`${file.path} leaves core: ${specifier}`];
      const targetModule = moduleOf(target);
      const layer = layerOf(targetModule)?.layer ?? Number.POSITIVE_INFINITY;
      if (targetModule === module || layer <= own.mayImport) return [];
      return [`${file.path} (${module}, layer ${own.layer}) may not import ${specifier}`];
    });
}

const source = "packages/core/src/";

interface Layer {
  readonly modules: readonly string[];
  readonly layer: number;
  /** The highest layer that its modules may import from. */
  readonly mayImport: number;
}

/** The layers of core, from the top. Imports go down or stay in their module. */
const layers: readonly Layer[] = [
  { layer: 7, mayImport: 6, modules: ["entry points"] },
  { layer: 6, mayImport: 5, modules: ["endpoints", "administration"] },
  { layer: 5, mayImport: 3, modules: ["pipeline"] },
  { layer: 4, mayImport: 1, modules: ["wire", "http"] },
  {
    layer: 3,
    mayImport: 2,
    modules: [
      "identity",
      "sensitivity",
      "routing",
      "policy",
      "sessions",
      "budgets",
      "connections",
      "limits",
      "idempotency",
      "responses",
      "attempts",
      "evidence",
    ],
  },
  { layer: 2, mayImport: 1, modules: ["contracts", "input"] },
  { layer: 1, mayImport: 0, modules: ["domain"] },
  { layer: 0, mayImport: -1, modules: ["kernel", "errors"] },
];

function moduleOf(path: string): string {
  const [folder, ...rest] = path.slice(source.length).split("/");
  return rest.length === 0 || folder === undefined ? "entry points" : folder;
}

const layerOf = (module: string): Layer | undefined =>
  layers.find(({ modules }) => modules.includes(module));

/** The import cycles among files, each as `a.ts → b.ts → a.ts`. Type imports count. */
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
