import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BuildOptions, build } from "esbuild";
import { describe, expect, it, onTestFinished } from "vitest";
import { catalogPrices } from "../src/index.ts";

const program = `
  import { catalogPrices } from "@tollgate/prices";
  const model = { gateway: "openai", vendor: "openai", model: "gpt-5-mini" };
  console.log(JSON.stringify(catalogPrices().priceOf(model, Date.UTC(2026, 8, 1))));
`;

/** A gateway with prices from the catalog. */
const app = `
  import { createGateway } from "@tollgate/core";
  import { catalogPrices } from "@tollgate/prices";
  import { simProvider } from "@tollgate/provider-sim";
  import { memoryStore } from "@tollgate/store-memory";
  const providers = { sim: simProvider() };
  createGateway({ store: memoryStore(), providers, prices: catalogPrices() });
  console.log(JSON.stringify("started"));
`;

/** Runs a program as a single file in an otherwise empty folder. */
async function runBundled(contents: string, options: BuildOptions): Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), "bundled-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const outfile = join(folder, options.format === "cjs" ? "app.cjs" : "app.mjs");
  await build({
    stdin: { contents, resolveDir: import.meta.dirname, loader: "ts" },
    conditions: ["tollgate-source"],
    bundle: true,
    platform: "node",
    outfile,
    logLevel: "error",
    ...options,
  });
  return JSON.parse(
    execFileSync(process.execPath, [outfile], {
      cwd: folder,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }),
  );
}

/** Replaces the catalog package with a file that has its functions but no prices. */
function emptyCatalog(): string {
  const folder = mkdtempSync(join(tmpdir(), "empty-catalog-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "index.mjs");
  writeFileSync(path, "export const findProvider = () => undefined;");
  return path;
}

describe("the catalog in a bundle", () => {
  it.each(["esm", "cjs"] as const)("prices calls from one %s file", async (format) => {
    expect(await runBundled(program, { format })).toMatchObject({
      input: 250_000_000,
      version: "genai-prices@0.1.8",
    });
  });

  it("names the installed release", () => {
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

  it("starts a gateway that uses it", async () => {
    expect(await runBundled(app, { format: "esm" })).toBe("started");
  });

  it("fails at start if its prices are missing", async () => {
    const alias = { "@pydantic/genai-prices": emptyCatalog() };
    await expect(runBundled(app, { format: "esm", alias })).rejects.toThrow(
      'catalogPrices(): @pydantic/genai-prices has no prices of "openai", so calls would have no price.',
    );
  });

  it("fails at start if its package is missing", async () => {
    const external = ["@pydantic/genai-prices"];
    await expect(runBundled(app, { format: "esm", external })).rejects.toThrow(
      "Cannot find package '@pydantic/genai-prices'",
    );
  });
});
