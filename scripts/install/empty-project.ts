import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Tool } from "./matrix.ts";
import type { Tarball } from "./pack-packages.ts";
import { runNpm } from "./run-npm.ts";
import { runnerPackages } from "./runners.ts";

const longestRunMs = 120_000;
/** Peers that no entry point needs to load or compile, and that are large or need a compiler. */
const leftOut = new Set(["next", "better-sqlite3"]);

/** A project with only the packed packages, their peers and the tools that test them. */
export interface EmptyProject {
  readonly directory: string;
  /** Writes a source file. */
  write(name: string, text: string): void;
  /** Compiles every source file into `out-<alias>`, and checks declarations. @throws Error with the output of the compiler */
  compile(typescript: Tool, resolution: "nodenext" | "bundler"): void;
  /** Runs a program in node_modules/.bin or a compiled file, and returns its output. @throws Error if it fails */
  run(node: Tool, words: readonly string[]): string;
}

export const compiled = (typescript: Tool, name: string): string =>
  `out-${typescript.alias}/${name.replace(/\.ts$/, ".js")}`;

/** The specifier of every entry point: `@tollgate/core/policy`. */
export const specifiers = (packages: readonly Tarball[]): readonly string[] =>
  packages.flatMap(({ manifest }) =>
    Object.entries(manifest.exports ?? {})
      .filter(([, entry]) => typeof entry !== "string")
      .map(([subpath]) => manifest.name + subpath.slice(1)),
  );

function manifestOf(packages: readonly Tarball[], tools: readonly Tool[]): string {
  const peers = packages.flatMap(({ manifest }) => Object.entries(manifest.peerDependencies ?? {}));
  return JSON.stringify({
    name: "empty-project",
    private: true,
    type: "module",
    dependencies: Object.fromEntries([
      ...peers.filter(([name]) => !leftOut.has(name)),
      ...packages.map(({ manifest, path }) => [manifest.name, `file:${path}`]),
      ["@types/node", "^24.19.2"],
      ...Object.entries(runnerPackages),
      ...tools.flatMap(({ alias, request }) => (alias === null ? [] : [[alias, request]])),
    ]),
  });
}

function execute(directory: string, command: string, words: readonly string[]): string {
  return execFileSync(command, words, {
    cwd: directory,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: longestRunMs,
  });
}

/** Installs packed packages into an empty folder. @throws Error if npm fails */
export function createEmptyProject(
  directory: string,
  packages: readonly Tarball[],
  tools: readonly Tool[],
): EmptyProject {
  const at = (...path: readonly string[]) => join(directory, ...path);
  mkdirSync(at("src"), { recursive: true });
  writeFileSync(at("package.json"), manifestOf(packages, tools));
  runNpm(directory, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error");
  const nodeOf = ({ alias }: Tool) =>
    alias === null ? process.execPath : at("node_modules", alias, "bin", "node");
  return {
    directory,
    write: (name, text) => writeFileSync(at("src", name), text),
    compile(typescript, resolution) {
      const file = at(`tsconfig.${typescript.alias}.${resolution}.json`);
      writeFileSync(
        file,
        JSON.stringify({
          compilerOptions: {
            target: "es2022",
            lib: ["es2024", "esnext.disposable"],
            types: ["node"],
            module: resolution === "nodenext" ? "nodenext" : "preserve",
            moduleResolution: resolution,
            strict: true,
            skipLibCheck: false,
            rootDir: "src",
            ...(resolution === "nodenext"
              ? { outDir: `out-${typescript.alias}` }
              : { noEmit: true }),
          },
          include: ["src"],
        }),
      );
      const compiler = at("node_modules", typescript.alias ?? "typescript", "bin", "tsc");
      execute(directory, process.execPath, [compiler, "-p", file]);
    },
    run: (node, words) => execute(directory, nodeOf(node), words),
  };
}
