/**
 * `npm run faults -- expressions --bytes 100000`: runs each regular expression of the shipped files on long runs of each
 * character that it mentions (S35). Fails if one of them takes 50 ms or more.
 */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseSync, Visitor } from "vite";
import { readNumbers } from "./arguments.ts";

const maxMs = 50;
const { bytes } = readNumbers({ bytes: 100_000 });
const packages = fileURLToPath(new URL("../..", import.meta.url));
const files = globSync("*/src/**/*.ts", { cwd: packages }).filter(
  (file) => !/\.test(-d)?\.ts$/.test(file) && !/^(faults|house|conformance)\//.test(file),
);
const expressions = files.flatMap((file) => expressionsOf(file));
const slow = expressions.flatMap(({ file, pattern, flags }) => {
  const ms = slowest(new RegExp(pattern, flags), pattern);
  return ms < maxMs ? [] : [`  ${file}: /${pattern}/${flags} took ${ms.toFixed(0)} ms\n`];
});
process.stdout.write(
  `${expressions.length} regular expressions on ${bytes} characters: ${slow.length} took ${maxMs} ms or more\n${slow.join("")}`,
);
process.exit(slow.length === 0 && expressions.length > 50 ? 0 : 1);

function expressionsOf(file: string) {
  const found: { file: string; pattern: string; flags: string }[] = [];
  const { program } = parseSync(file, readFileSync(`${packages}/${file}`, "utf8"));
  new Visitor({
    Literal(node) {
      if ("regex" in node) found.push({ file, ...node.regex });
    },
  }).visit(program);
  return found;
}

/** The longest of its runs, each of which is measured again if it was slow, in case the machine was busy. */
function slowest(expression: RegExp, pattern: string): number {
  const characters = [...new Set([..."aA0 /.\n\u00e9", ...pattern])];
  const runs = characters.flatMap((one) => [one, `${one}a`, `a${one}`]);
  const texts = runs.flatMap((run) => {
    const long = run.repeat(bytes / run.length);
    return [long, `${long}!`, `!${long}\0`];
  });
  return Math.max(
    ...texts.map((text) => {
      const ms = timeOf(expression, text);
      return ms < maxMs ? ms : Math.min(ms, timeOf(expression, text), timeOf(expression, text));
    }),
  );
}

function timeOf(expression: RegExp, text: string): number {
  expression.lastIndex = 0;
  const started = performance.now();
  expression.test(text);
  return performance.now() - started;
}
