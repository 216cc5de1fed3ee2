import { isBuiltin } from "node:module";
import type { Manifest, Workspace } from "../../../scripts/workspaces.ts";
import type { SourceFile } from "./source-file.ts";

const nodeFloor = "^22.22.3 || >=24.15";
const order = ["tollgate-source", "types", "default"];

/** Whether an entry point only re-exports another package. It is written by hand and needs no build. */
const isForwarded = ({
  types = "",
  default: code = "",
  ...others
}: Readonly<Record<string, string>>) =>
  Object.keys(others).length === 0 &&
  types === code.replace(/\.js$/, ".d.ts") &&
  !/^\.\/(dist|src)\//.test(code);

function exportProblems({ exports = {} }: Manifest): readonly string[] {
  const problems = Object.keys(exports).some((subpath) => subpath !== "./package.json")
    ? []
    : ["has no entry point"];
  for (const [subpath, entry] of Object.entries(exports)) {
    if (subpath === "./package.json") continue;
    if (typeof entry !== "string" && isForwarded(entry)) continue;
    if (typeof entry === "string" || Object.keys(entry).join() !== order.join()) {
      problems.push(`exports ${subpath} with other conditions than ${order.join(", ")}`);
    }
  }
  return problems;
}

const repositoryUrl = "https://github.com/tollgate-dev/tollgate";

/** Checks the links that a registry shows for the package. */
function addressProblems({ directory, manifest }: Workspace): readonly string[] {
  const { repository, homepage, bugs, keywords = [] } = manifest;
  const problems: string[] = [];
  if (repository?.url !== `git+${repositoryUrl}.git` || repository.directory !== directory)
    problems.push(`does not name the repository ${repositoryUrl} and its folder in it`);
  if (homepage !== `${repositoryUrl}/tree/main/${directory}#readme`)
    problems.push("has no homepage, or one other than its README");
  if (bugs !== `${repositoryUrl}/issues`) problems.push("has no address for bug reports");
  if (keywords.length < 3 || new Set(keywords).size < keywords.length)
    problems.push("has fewer than three keywords, or repeats one");
  return problems;
}

/** Lists the problems of a published package's package.json. */
export function manifestProblems(at: Workspace): readonly string[] {
  const { directory, manifest } = at;
  const problems = [...exportProblems(manifest), ...addressProblems(at)];
  if (manifest.license !== "MIT") problems.push("has no MIT license");
  if (manifest.type !== "module") problems.push("is not a module");
  if (!manifest.description) problems.push("has no description");
  if (manifest.engines?.["node"] !== nodeFloor) problems.push(`does not require node ${nodeFloor}`);
  if (!manifest.files?.includes("!src/**/*.test.ts")) problems.push("would publish its tests");
  return problems.map((problem) => `${directory} ${problem}`);
}

const packageOf = (specifier: string): string =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");

/** Lists imports of undeclared packages, and relative imports that leave the package. */
export function undeclaredImports(file: SourceFile, at: Workspace): readonly string[] {
  const { dependencies, peerDependencies, name } = at.manifest;
  const declared = new Set([name, ...Object.keys({ ...dependencies, ...peerDependencies })]);
  return file.imports
    .filter((specifier) => {
      if (specifier.startsWith(".")) {
        const target = new URL(specifier, `file:///${file.path}`).pathname;
        return !target.startsWith(`/${at.directory}/`);
      }
      return !isBuiltin(specifier) && !declared.has(packageOf(specifier));
    })
    .map(
      (specifier) => `${file.path} imports ${specifier}, which ${at.directory} does not declare`,
    );
}
