import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium } from "playwright-core";

const installed = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

function isRunnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export interface RunningBrowser {
  readonly browser: Browser;
  close(): Promise<void>;
}

/**
 * The browser that TOLLGATE_CHROMIUM names, or an installed one, or the one in an npm package (for Linux on x64).
 * @throws Error if there is no browser; it says how to get one
 */
export async function startBrowser(): Promise<RunningBrowser> {
  const named = process.env["TOLLGATE_CHROMIUM"];
  const executablePath = named ?? installed.find(isRunnable);
  if (executablePath !== undefined) {
    const browser = await chromium.launch({ executablePath });
    return { browser, close: () => browser.close() };
  }
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new Error("Install Chromium or Chrome, or set TOLLGATE_CHROMIUM to its path.");
  }
  return startPackedBrowser();
}

/** The package unpacks under a fixed name into the folder for temporary files, so each run gets a separate folder. */
async function startPackedBrowser(): Promise<RunningBrowser> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-chromium-"));
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = folder;
  try {
    const { default: packed, inflate } = await import("@sparticuz/chromium");
    const entry = fileURLToPath(import.meta.resolve("@sparticuz/chromium"));
    const libraries = await inflate(join(dirname(entry), "..", "bin", "al2023.tar.br"));
    const browser = await chromium.launch({
      executablePath: await packed.executablePath(),
      args: packed.args,
      env: { ...process.env, LD_LIBRARY_PATH: join(libraries, "lib") },
    });
    return {
      browser,
      async close() {
        await browser.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
}
