import { defineConfig } from "vitest/config";

export default defineConfig({
  ssr: { resolve: { conditions: ["tollgate-source", "module", "node", "development|production"] } },
  test: {
    include: ["built-app.ts", "contract.ts"],
    // Only ends tests that hang, as in vitest.workspace.ts.
    testTimeout: 20_000,
    reporters: ["default", "../../../../scripts/plain-reporter.ts"],
  },
});
