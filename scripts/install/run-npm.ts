import { execFileSync } from "node:child_process";

const maxRunMs = 300_000;

/**
 * Runs the npm that started this script, on the same Node, because another npm may have other settings. Returns its
 * output.
 * @throws Error if npm fails, takes longer than five minutes, or did not start this script
 */
export function runNpm(directory: string, ...words: readonly string[]): string {
  const { npm_node_execpath: node, npm_execpath: npm } = process.env;
  if (node === undefined || npm === undefined) {
    throw new Error("Run this script through npm run.");
  }
  return execFileSync(node, [npm, ...words], {
    cwd: directory,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: maxRunMs,
    maxBuffer: 64 * 1024 * 1024,
  });
}
