// Tests the packages as users get them: packed, and installed into an empty project outside this checkout.
// `npm run check:install` uses one pair of Node and TypeScript. `-- --matrix` uses every pair, and apps with older
// versions of the peers. `-- --apps` tests only those apps. `-- --global` tests only a global install of the command
// line, with mounted configuration files.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { snippets } from "../packages/house/src/markdown.ts";
import { check, report } from "./check.ts";
import { checkApp, everyApp, nameOf } from "./install/app-versions.ts";
import { coreSizeProblems, measureCore } from "./install/core-size.ts";
import { compiled, createEmptyProject, specifiers } from "./install/empty-project.ts";
import { installGlobally } from "./install/global-install.ts";
import { everyNode, everyTypescript, newestTypescript, thisNode } from "./install/matrix.ts";
import { packPackages, type Tarball } from "./install/pack-packages.ts";
import { checkRunner, runners } from "./install/runners.ts";

function requireNone(problems: readonly string[]): void {
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

/** Lists the files that a package lacks, and those that it should not contain. */
const contentProblems = ({ manifest, files }: Tarball): readonly string[] => [
  ...["LICENSE", "README.md", "package.json"]
    .filter((file) => !files.includes(file))
    .map((file) => `${manifest.name} lacks ${file}`),
  ...files
    .filter((file) => /\.test(-d)?\.|^test\/|tsbuildinfo/.test(file))
    .map((file) => `${manifest.name} contains ${file}`),
];

function printCoreSize(directory: string, core: Tarball): void {
  const size = measureCore(directory, core);
  console.log(`@tollgate/core: ${size.unpackedBytes} bytes unpacked, ${size.packedBytes} packed`);
  console.log(`@tollgate/core: ${size.gzipBytes} bytes of JavaScript, gzipped`);
  console.log(`@tollgate/core: ${size.importMs.toFixed(0)} ms to import (median)`);
  requireNone(coreSizeProblems(size));
}

/** One file per snippet of the README, and one that imports every entry point. */
function sourcesOf(packages: readonly Tarball[]): ReadonlyMap<string, string> {
  const blocks = snippets(readFileSync("README.md", "utf8")).filter(
    ({ language }) => language === "ts",
  );
  const sources = new Map(
    blocks.map(({ line, code }) => [`readme-${line}.ts`, `${code}\nexport {};\n`]),
  );
  const everyImport = specifiers(packages).map(
    (specifier, index) =>
      `import * as entry${index} from "${specifier}";\nif (!entry${index}) throw 0;`,
  );
  return sources.set("every-entry-point.ts", everyImport.join("\n"));
}

/** Checks apps that have other versions of the peers. */
async function checkApps(folder: string, packages: readonly Tarball[]): Promise<void> {
  for (const app of everyApp)
    await check(`in an app of ${nameOf(app)}`, () => checkApp(folder, app, packages));
}

/** Checks only the command line, with configuration files that have no packages next to them. */
async function checkGlobal(folder: string, packages: readonly Tarball[]): Promise<void> {
  const installed = installGlobally(folder, packages);
  for (const name of ["tollgate.config.yaml", "tollgate.config.ts"] as const)
    await check(`a global install serves a mounted ${name}`, () => installed.serve(name));
}

async function checkEverything(folder: string, matrix: boolean): Promise<void> {
  const nodes = matrix ? everyNode : thisNode;
  const compilers = matrix ? everyTypescript : newestTypescript;
  const packages = packPackages(".", folder);
  for (const tarball of packages) {
    await check(`${tarball.manifest.name} is complete`, () =>
      requireNone(contentProblems(tarball)),
    );
  }
  if (matrix) await checkApps(folder, packages);
  await checkGlobal(folder, packages);
  const project = createEmptyProject(join(folder, "project"), packages, [...nodes, ...compilers]);
  const sources = sourcesOf(packages);
  for (const [name, text] of sources) project.write(name, text);

  for (const typescript of compilers) {
    await check(`types resolve as bundlers do, ${typescript.name}`, () =>
      project.compile(typescript, "bundler"),
    );
    await check(`types resolve, ${typescript.name}`, () => project.compile(typescript, "nodenext"));
    for (const node of nodes) {
      for (const name of sources.keys()) {
        await check(`${name}, ${typescript.name}, ${node.name}`, () => {
          project.run(node, [compiled(typescript, name)]);
        });
      }
    }
  }
  for (const node of nodes) {
    for (const runner of runners) {
      await check(`assertions under ${runner.name}, ${node.name}`, () =>
        checkRunner(project, node, runner),
      );
    }
    await check(`tollgate keys, ${node.name}`, () => {
      const words = ["node_modules/tollgate/bin/tollgate.js", "keys"];
      const who = ["--organization", "acme", "--user", "ada", "--label", node.name];
      project.run(node, [...words, "create", ...who]);
      const listed = project.run(node, [...words, "list", "--organization", "acme", "--json"]);
      if (!listed.includes(node.name))
        throw new Error(`The new key is missing from the list: ${listed}`);
    });
  }
  const core = packages.find(({ manifest }) => manifest.name === "@tollgate/core");
  await check("the size of @tollgate/core is in bounds", () => {
    if (core === undefined) throw new Error("npm packed no @tollgate/core.");
    printCoreSize(project.directory, core);
  });
}

const { values } = parseArgs({
  options: {
    matrix: { type: "boolean", default: false },
    apps: { type: "boolean", default: false },
    global: { type: "boolean", default: false },
  },
});
const folder = mkdtempSync(join(tmpdir(), "tollgate-install-"));
mkdirSync(join(folder, "project"));
try {
  if (values.apps) await checkApps(folder, packPackages(".", folder));
  else if (values.global) await checkGlobal(folder, packPackages(".", folder));
  else await checkEverything(folder, values.matrix);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
report();
