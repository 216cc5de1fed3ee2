import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseAllDocuments } from "yaml";
import { runNpm } from "../install/run-npm.ts";

/** The objects of Kubernetes, as types and as classes with a `validate` method. */
const schemas = "kubernetes-models@5.1.0";

interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
}

/**
 * Renders a folder with kustomize and checks every object that results.
 * @throws Error if a member is unknown, missing or has a wrong value
 */
export function checkManifests(folder: string, scratch: string): void {
  const rendered = execFileSync("kubectl", ["kustomize", folder], { encoding: "utf8" });
  const objects = parseAllDocuments(rendered).map((one): KubernetesObject => one.toJS());
  if (objects.length === 0) throw new Error(`${folder} renders no object.`);
  const program = join(scratch, "objects.ts");
  writeFileSync(join(scratch, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(program, objects.map(validation).join("\n"));
  runNpm(scratch, "install", "--no-audit", "--no-fund", schemas);
  const run = (...words: readonly string[]): unknown =>
    execFileSync(process.execPath, words, { cwd: scratch, stdio: "pipe" });
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext"];
  run(resolve("node_modules/typescript/bin/tsc"), ...options, program);
  run(program);
}

/** The classes accept unknown members, so each object is a literal, in which TypeScript rejects them. */
const validation = ({ apiVersion, kind, ...object }: KubernetesObject, index: number): string =>
  `import { ${kind} as Kind${index} } from "kubernetes-models/${apiVersion}";\n` +
  `new Kind${index}(${JSON.stringify(object, null, 2)}).validate();\n`;
