// `npm run bench:source`: measures the shipped source of all packages: the number, the median and the longest of files and
// functions.
import { functionLengths } from "../../../packages/house/src/file-sizes.ts";
import { everyWorkspace, shippedSources } from "../../../packages/house/src/repository.ts";

const files = everyWorkspace().flatMap(({ directory }) => shippedSources(directory));

function row(kind: string, sizes: readonly { readonly lines: number; readonly name: string }[]) {
  const sorted = sizes.toSorted((a, b) => a.lines - b.lines);
  const longest = sorted.at(-1);
  return {
    kind,
    count: sorted.length,
    median: sorted[Math.floor(sorted.length / 2)]?.lines ?? 0,
    longest: longest?.lines ?? 0,
    where: longest?.name ?? "",
  };
}

const functions = files.flatMap(functionLengths);
console.table([
  row(
    "files",
    files.map(({ path, text }) => ({ name: path, lines: text.trimEnd().split("\n").length })),
  ),
  row(
    "functions",
    functions.map(({ name, path, lines }) => ({ name: `${name} in ${path}`, lines })),
  ),
]);
const long = functions.filter(({ lines }) => lines > 40).sort((a, b) => b.lines - a.lines);
for (const { name, path, lines } of long) console.log(`${lines} lines: ${name} in ${path}`);
