import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The catalog's release, as `genai-prices@0.1.8`; its package does not export its own manifest. */
export function catalogVersion(load: NodeJS.Require): string {
  const entry = load.resolve("@pydantic/genai-prices");
  const manifest: unknown = JSON.parse(
    readFileSync(join(dirname(entry), "..", "package.json"), "utf8"),
  );
  if (typeof manifest !== "object" || manifest === null || !("version" in manifest))
    throw new TypeError("the price catalog's package.json has no version");
  return `genai-prices@${String(manifest.version)}`;
}
