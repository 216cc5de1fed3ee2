import { defineConfig } from "vitest/config";

export default defineConfig({
  ssr: { resolve: { conditions: ["tollgate-source", "module", "node", "development|production"] } },
  test: {
    include: ["built-app.ts", "contract.ts"],
    reporters: ["default", "../../../../scripts/plain-reporter.ts"],
  },
});
