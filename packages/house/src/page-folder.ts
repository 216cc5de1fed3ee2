import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Snippet } from "./markdown-snippets.ts";

const longestSnippetMs = 60_000;
const longestStartMs = 20_000;

/** A gateway that `npm start` of a page stands for. */
export interface RunningGateway {
  readonly url: string;
  readonly key: string;
  stop(): Promise<void>;
}

/** Where the snippets of one page run, in the page's order. */
export interface PageFolder {
  readonly directory: string;
  /** Writes a ts snippet; the path, for compiling and running. */
  write(snippet: Snippet): string;
  /** Runs a ts snippet on the packages as they are built; what it printed. */
  runTypeScript(snippet: Snippet): string;
  /** Runs a sh snippet against the page's gateway; what it printed. */
  runShell(snippet: Snippet, gateway: RunningGateway | null): string;
  /** Starts what `npm start` starts, on a free port and with a database in this folder. */
  start(): Promise<RunningGateway>;
}

/**
 * npm as a page means it, without its side effects on the checkout: `npm ci` is done already, `npm test` and
 * `npm start` run elsewhere in this suite, and `npm run` runs the script of the checkout in the page's folder.
 */
const shellNpm = (root: string): string => `
set -euo pipefail
npm() {
  case "$*" in
    ci) test -f "${root}/package-lock.json" ;;
    test|start) ;;
    "run -s tollgate -- "*) shift 4; node "${root}/packages/cli/bin/tollgate.js" "$@" ;;
    *) echo "this page may not run: npm $*" >&2; return 1 ;;
  esac
}
`;

async function startGateway(root: string, directory: string): Promise<RunningGateway> {
  const binary = `${root}/packages/cli/bin/tollgate.js`;
  const child = spawn("node", [binary, "serve", "--port", "0"], {
    cwd: directory,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const expired = setTimeout(() => child.kill("SIGKILL"), longestStartMs);
  const seen = { url: "", key: "" };
  for await (const line of createInterface({ input: child.stdout })) {
    seen.url ||= /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0] ?? "";
    seen.key ||= /\btg_[0-9A-Za-z]{49}\b/.exec(line)?.[0] ?? "";
    if (seen.url !== "" && seen.key !== "") break;
  }
  clearTimeout(expired);
  if (seen.url === "" || seen.key === "") throw new Error("serve printed no address and key");
  child.stdout.resume();
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  return { ...seen, stop };
}

/** Opens the folder of one page inside the checkout, so that its imports resolve like an embedder's. */
export function pageFolder(root: string, directory: string): PageFolder {
  mkdirSync(directory, { recursive: true });
  const fileOf = ({ file, line }: Snippet) => `${directory}/${file ?? `line-${line}.ts`}`;
  const run = (command: string, words: readonly string[], environment: NodeJS.ProcessEnv) =>
    execFileSync(command, words, {
      cwd: directory,
      encoding: "utf8",
      timeout: longestSnippetMs,
      stdio: ["ignore", "pipe", "pipe"],
      env: environment,
    });
  return {
    directory,
    write(snippet) {
      writeFileSync(fileOf(snippet), `${snippet.code}\nexport {};\n`);
      return fileOf(snippet);
    },
    runTypeScript: (snippet) => run("node", [fileOf(snippet)], process.env),
    runShell(snippet, gateway) {
      const code = snippet.code.replaceAll("http://127.0.0.1:8787", gateway?.url ?? "");
      const environment = { ...process.env, TOLLGATE_KEY: gateway?.key ?? "" };
      return run("bash", ["-c", `${shellNpm(root)}\n${code}`], environment);
    },
    start: () => startGateway(root, directory),
  };
}
