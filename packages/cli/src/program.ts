import { readFileSync } from "node:fs";
import { Command } from "commander";
import { defineActivity } from "./commands/activity.ts";
import { defineBudgets } from "./commands/budgets.ts";
import { defineChanges } from "./commands/changes.ts";
import { defineCheck } from "./commands/check.ts";
import { defineConnections } from "./commands/connections.ts";
import { defineDecisions } from "./commands/decisions.ts";
import { defineKeys } from "./commands/keys.ts";
import { defineMaintenance } from "./commands/maintenance.ts";
import { defineSchema } from "./commands/schema.ts";
import { defineServe } from "./commands/serve.ts";
import { defineSessions } from "./commands/sessions.ts";
import { defineSteps } from "./commands/steps.ts";

/** The command line. Commands load what they need when they run, so that starting one is quick. */
export function createProgram(): Command {
  const program = new Command("tollgate")
    .description("A governed model gateway: serve it, administer it, read what it recorded.")
    .version(version())
    .option(
      "--config <file>",
      "configuration file (default: tollgate.config.{ts,mts,js,mjs,json,yaml,yml})",
    )
    .option("--json", "print one JSON document instead of text")
    .option("--actor <name>", "who is named in the record of a change", "cli")
    .helpCommand(true)
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  defineServe(program);
  defineKeys(program);
  defineConnections(program);
  defineBudgets(program);
  defineActivity(program);
  defineSteps(program);
  defineSessions(program);
  defineDecisions(program);
  defineChanges(program);
  defineMaintenance(program);
  defineCheck(program);
  defineSchema(program);
  return program;
}

function version(): string {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  );
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "unknown";
}
