import { execFileSync } from "node:child_process";

const longestRunMs = 300_000;

/**
 * Runs the npm that started this script, on the Node it runs on itself: another one may read other settings of the
 * machine. Returns what it printed.
 * @throws Error when npm fails, takes longer than five minutes, or did not start this script.
 */
export function runNpm(directory: string, ...words: readonly string[]): string {
  const { npm_node_execpath: node, npm_execpath: npm } = process.env;
  if (node === undefined || npm === undefined) {
    throw new Error("run this script through npm run");
  }
  return execFileSync(node, [npm, ...words], {
    cwd: directory,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: longestRunMs,
    maxBuffer: 64 * 1024 * 1024,
  });
}
