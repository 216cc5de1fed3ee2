import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  ssr: { resolve: { conditions: ["tollgate-source", "node", "development|production"] } },
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["contract.ts"],
  },
});
