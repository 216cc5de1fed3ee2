import { readFileSync } from "node:fs";
import { Command } from "commander";
import { defineChanges, defineDecisions } from "./commands/audit.ts";
import { defineBudgets } from "./commands/budgets.ts";
import { defineConnections } from "./commands/connections.ts";
import { defineKeys } from "./commands/keys.ts";
import {
  defineCheck,
  defineMaintenance,
  defineSchema,
  defineServe,
} from "./commands/operations.ts";
import { defineSessions } from "./commands/sessions.ts";
import { defineActivity, defineSteps } from "./commands/steps.ts";
import { describeFailure } from "./failure.ts";
import { requireNode } from "./require-node.ts";

/**
 * Runs one command line and sets the exit code: 0 when it did what was asked, 1 when it failed, 2 when it was not
 * understood. `argv` is `process.argv`: the program's own two words, then the arguments.
 */
export async function main(argv: readonly string[]): Promise<void> {
  // A reader such as `head` may leave before everything is printed.
  process.stdout.on("error", () => process.exit());
  try {
    // Other runtimes name a Node they resemble.
    if (!("bun" in process.versions || "deno" in process.versions))
      requireNode(process.versions.node);
    await createProgram().parseAsync([...argv]);
  } catch (thrown) {
    const { exitCode, line } = describeFailure(thrown);
    if (line !== null) process.stderr.write(`${line}\n`);
    process.exitCode = exitCode;
  }
}

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
