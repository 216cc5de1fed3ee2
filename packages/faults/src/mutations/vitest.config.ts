/** Tests of one process, on one processor, against files with mutants that a `MutantRunner` switches. */
import { relative, resolve } from "node:path";
import type { Plugin } from "vite";
import workspace from "../../../../vitest.workspace.ts";
import { readFiles } from "./progress.ts";

/** The packages whose tests call the mutated files in their own process. Databases would only repeat `store-memory`. */
const projects = [
  "core",
  "store-engine",
  "store-memory",
  "provider-anthropic",
  "provider-http",
  "provider-openai",
];

const packages = resolve(import.meta.dirname, "../../..");
const files = readFiles();

const plugin: Plugin = {
  name: "tollgate-mutants",
  enforce: "pre",
  load: (id) => files.get(relative(packages, id)) ?? null,
};

const all = workspace.test?.projects ?? [];

export default {
  ...workspace,
  plugins: [plugin],
  test: {
    ...workspace.test,
    fsModuleCache: false,
    maxWorkers: 1,
    typecheck: { enabled: false },
    runner: `${import.meta.dirname}/mutant-runner.ts`,
    projects: all.flatMap((project) =>
      typeof project === "object" &&
      "test" in project &&
      typeof project.test?.name === "string" &&
      projects.includes(project.test.name)
        ? [
            {
              ...project,
              test: {
                ...project.test,
                typecheck: { enabled: false },
                // The plugin needs Vite, which the workspace does without.
                experimental: { viteModuleRunner: true },
              },
            },
          ]
        : [],
    ),
  },
};
