import { defineConfig } from "vitest/config";

export default defineConfig({
  ssr: { resolve: { conditions: ["tollgate-source", "module", "node", "development|production"] } },
  test: { include: ["*.test.ts"], reporters: ["default", "../scripts/plain-reporter.ts"] },
});
