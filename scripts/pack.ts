// `npm run pack -- FOLDER` packs the command line of a built checkout, and the packages that it needs, into a folder.
import { mkdirSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { neededBy, packPackages } from "./install/pack-packages.ts";

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error("Name the folder for the packages: npm run pack -- FOLDER");
  process.exit(2);
}
const target = resolve(folder);
mkdirSync(target, { recursive: true });
const packages = packPackages(process.cwd(), target);
const needed = neededBy("tollgate", packages);
for (const { path } of packages) if (!needed.some((one) => one.path === path)) rmSync(path);
for (const { path } of needed) console.log(path);
