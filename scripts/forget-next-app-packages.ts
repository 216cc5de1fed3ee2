// Removes this checkout's packages from the lock file of the Next app, so that `npm install` reads their dependencies
// again: npm keeps the entry of a folder until its version changes.
import { readFileSync, rmSync, writeFileSync } from "node:fs";

const folder = "examples/next-app";
const path = `${folder}/package-lock.json`;
const lock = JSON.parse(readFileSync(path, "utf8")) as {
  readonly packages: Readonly<Record<string, unknown>>;
};
const packages = Object.fromEntries(
  Object.entries(lock.packages).filter(([at]) => !at.startsWith("node_modules/@tollgate/")),
);
writeFileSync(path, `${JSON.stringify({ ...lock, packages }, null, 2)}\n`);
rmSync(`${folder}/node_modules/@tollgate`, { recursive: true, force: true });
rmSync(`${folder}/node_modules/.package-lock.json`, { force: true });
