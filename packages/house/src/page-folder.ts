import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Snippet } from "./markdown.ts";
import type { ModuleProcess } from "./module-process.ts";

const maxSnippetMs = 60_000;
const maxStartMs = 20_000;

/** The gateway that `npm start` on a page starts. */
export interface RunningGateway {
  readonly url: string;
  readonly key: string;
  stop(): Promise<void>;
}

/** The folder in which the snippets of one page run, in order. */
export interface PageFolder {
  readonly directory: string;
  /** Writes a ts snippet and returns its path. */
  write(snippet: Snippet): string;
  /** Runs a ts snippet with the built packages and returns its output. @throws Error if it fails. */
  runTypeScript(snippet: Snippet): Promise<string>;
  /** Runs a sh snippet against the page's gateway and returns its output. */
  runShell(snippet: Snippet, gateway: RunningGateway | null): string;
  /** Starts the gateway of `npm start` on a free port, with a database in this folder. */
  start(): Promise<RunningGateway>;
}

/**
 * npm without its side effects on the checkout: `npm ci` already ran, `npm test` and `npm start` run elsewhere in this
 * suite, and `npm run -s tollgate` runs the command line in the folder of the page.
 */
const shellNpm = (root: string): string => `
set -euo pipefail
npm() {
  case "$*" in
    ci) test -f "${root}/package-lock.json" ;;
    test|start) ;;
    "run -s tollgate -- "*) shift 4; node "${root}/packages/cli/bin/tollgate.js" "$@" ;;
    *) echo "A page may not run: npm $*" >&2; return 1 ;;
  esac
}
`;

async function startGateway(root: string, directory: string): Promise<RunningGateway> {
  const binary = `${root}/packages/cli/bin/tollgate.js`;
  const child = spawn("node", [binary, "serve", "--port", "0"], {
    cwd: directory,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const expired = setTimeout(() => child.kill("SIGKILL"), maxStartMs);
  const seen = { url: "", key: "" };
  for await (const line of createInterface({ input: child.stdout })) {
    seen.url ||= /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0] ?? "";
    seen.key ||= /\btg_[0-9A-Za-z]{49}\b/.exec(line)?.[0] ?? "";
    if (seen.url !== "" && seen.key !== "") break;
  }
  clearTimeout(expired);
  if (seen.url === "" || seen.key === "") throw new Error("serve printed no address and no key.");
  child.stdout.resume();
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  return { ...seen, stop };
}

/**
 * Opens the folder of one page inside the checkout, where its imports resolve as they do for an embedder. `modules` runs
 * its ts snippets.
 */
export function pageFolder(
  root: string,
  directory: string,
  modules: Pick<ModuleProcess, "run">,
): PageFolder {
  mkdirSync(directory, { recursive: true });
  const fileOf = ({ file, line }: Snippet) => `${directory}/${file ?? `line-${line}.ts`}`;
  return {
    directory,
    write(snippet) {
      writeFileSync(fileOf(snippet), `${snippet.code}\nexport {};\n`);
      return fileOf(snippet);
    },
    runTypeScript: (snippet) => modules.run(fileOf(snippet)),
    runShell(snippet, gateway) {
      const code = snippet.code.replaceAll("http://127.0.0.1:8787", gateway?.url ?? "");
      const environment = { ...process.env, TOLLGATE_KEY: gateway?.key ?? "" };
      return execFileSync("bash", ["-c", `${shellNpm(root)}\n${code}`], {
        cwd: directory,
        encoding: "utf8",
        timeout: maxSnippetMs,
        stdio: ["ignore", "pipe", "pipe"],
        env: environment,
      });
    },
    start: () => startGateway(root, directory),
  };
}
