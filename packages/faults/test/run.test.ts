import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const source = fileURLToPath(new URL("../src", import.meta.url));
const run = (...words: readonly string[]) =>
  spawnSync(process.execPath, [`${source}/run.ts`, ...words], { encoding: "utf8" });

it("npm run faults lists every experiment of this package", () => {
  const { stdout, status } = run();
  const listed = [...stdout.matchAll(/^ {2}(\S+) /gm)].map(([, name]) => name);
  const commands = readdirSync(source)
    .filter((file) => file.endsWith(".ts") && file !== "run.ts")
    .filter((file) => /`npm run faults -- /.test(readFileSync(`${source}/${file}`, "utf8")))
    .map((file) => file.replace(".ts", ""));
  expect(commands.length).toBeGreaterThan(10);
  expect({ listed, status }).toEqual({ listed: commands.sort(), status: 0 });
});

it.each(["nothing", "toString"])(
  "npm run faults rejects the unknown name %s with status 2",
  (name) => {
    const { stderr, status } = run(name);
    expect(stderr).toContain(`Unknown experiment: ${name}.`);
    expect(stderr).toContain("kills");
    expect(status).toBe(2);
  },
);
