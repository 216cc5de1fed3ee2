import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { describe, expect, it, onTestFinished } from "vitest";
import { requireFilled } from "../src/catalog-version.ts";
import { catalogPrices } from "../src/index.ts";

const program = `
  import { catalogPrices } from "@tollgate/prices";
  const model = { gateway: "openai", vendor: "openai", model: "gpt-5-mini" };
  console.log(JSON.stringify(catalogPrices().priceOf(model, Date.UTC(2026, 8, 1))));
`;

/** Runs the program as one file in a folder that has nothing else. */
async function runBundled(format: "esm" | "cjs"): Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), "bundled-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const outfile = join(folder, format === "esm" ? "app.mjs" : "app.cjs");
  await build({
    stdin: { contents: program, resolveDir: import.meta.dirname, loader: "ts" },
    conditions: ["tollgate-source"],
    bundle: true,
    platform: "node",
    format,
    outfile,
    logLevel: "error",
  });
  return JSON.parse(execFileSync(process.execPath, [outfile], { cwd: folder, encoding: "utf8" }));
}

describe("the catalog in a bundle", () => {
  it.each(["esm", "cjs"] as const)("prices calls, out of one %s file", async (format) => {
    expect(await runBundled(format)).toMatchObject({
      input: 250_000_000,
      version: "genai-prices@0.1.8",
    });
  });

  it("is named by the release that is installed", () => {
    const manifest: unknown = JSON.parse(
      readFileSync(
        new URL("../../../node_modules/@pydantic/genai-prices/package.json", import.meta.url),
        "utf8",
      ),
    );
    const model = { gateway: "openai", vendor: "openai", model: "gpt-5-mini" };
    const version = catalogPrices().priceOf(model, Date.UTC(2026, 8, 1))?.version ?? "";
    expect(manifest).toMatchObject({ version: version.replace("genai-prices@", "") });
  });

  it("is refused at the start when its prices were left behind", () => {
    expect(() => requireFilled({ findProvider: () => undefined })).toThrow(
      'catalogPrices(): @pydantic/genai-prices has no prices of "openai", so calls would go unpriced.',
    );
  });
});
