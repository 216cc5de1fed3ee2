// Runs the binding contract in real, built Next apps of every supported major: `npm run test:next`, or one of them by
// `npm run test:next -- 15`. Each has a lock file of its own, so that the checkout stays light without them.
import { execFileSync } from "node:child_process";

const [only] = process.argv.slice(2);
const versions = only === undefined ? ["15", "16"] : [only];

for (const version of versions) {
  const directory = `${import.meta.dirname}/next-${version}`;
  const run = (command: string, words: readonly string[], cwd = directory): void => {
    const env = { ...process.env, NEXT_VERSION: version, NEXT_TELEMETRY_DISABLED: "1" };
    execFileSync(command, words, { cwd, env, stdio: "inherit" });
  };
  run("npm", ["ci", "--ignore-scripts"]);
  run("node", ["node_modules/next/dist/bin/next", "build"]);
  run("npx", ["vitest", "run", "--root", "."], import.meta.dirname);
}
