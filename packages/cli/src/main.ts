import { readFileSync } from "node:fs";
import { Command, Option } from "commander";
import { defineAdminTokens } from "./commands/admin-tokens.ts";
import { defineApply } from "./commands/apply.ts";
import { defineChanges, defineDecisions } from "./commands/audit.ts";
import { defineBudgets } from "./commands/budgets.ts";
import { defineConnections } from "./commands/connections.ts";
import { defineEvidence } from "./commands/evidence.ts";
import { defineExport } from "./commands/export.ts";
import { defineGateway } from "./commands/gateway.ts";
import { defineKeys } from "./commands/keys.ts";
import {
  defineCheck,
  defineImport,
  defineMaintenance,
  defineSchema,
  defineServe,
} from "./commands/operations.ts";
import { defineRateLimits } from "./commands/rate-limits.ts";
import { defineSessions } from "./commands/sessions.ts";
import { defineActivity, defineSteps } from "./commands/steps.ts";
import { CommandError, describeFailure, messageOf } from "./failure.ts";
import { requireNode } from "./require-node.ts";
import { printable } from "./table.ts";

/**
 * Runs one command line and sets the exit code: 0 for success, 1 for a failure, 2 for an invalid command. `argv` is
 * `process.argv`: the runtime and the script, then the arguments.
 */
export async function main(argv: readonly string[]): Promise<void> {
  process.stdout.on("error", endOutput);
  // Nothing is left to report it to, and a server continues without a log.
  process.stderr.on("error", () => {});
  try {
    // Other runtimes report the version of a compatible Node.
    if (!("bun" in process.versions || "deno" in process.versions))
      requireNode(process.versions.node);
    await createProgram().parseAsync([...argv]);
  } catch (thrown) {
    const { exitCode, line } = describeFailure(thrown);
    if (line !== null) process.stderr.write(`${line}\n`);
    process.exitCode = exitCode;
  }
}

/**
 * A reader such as `head` can close the pipe early: the command goes on, and a server serves. Any other failure loses output,
 * such as a secret or part of an export.
 */
function endOutput(error: Error): void {
  if ("code" in error && error.code === "EPIPE") return;
  process.stderr.write(`error: can't write to standard output: ${messageOf(error)}\n`);
  process.exit(1);
}

/** Creates the command line. Commands load their dependencies when they run, so the start is fast. */
export function createProgram(): Command {
  const program = new Command("tollgate")
    .description("A governed model gateway: serve it, administer it, read its records.")
    .version(version())
    .option(
      "--config <file>",
      "configuration file (default: tollgate.config.{ts,mts,js,mjs,json,yaml,yml})",
    )
    .option("--json", "print a JSON document instead of text")
    .addOption(
      new Option(
        "--url <url>",
        "administer a remote gateway through the admin API at this URL",
      ).env("TOLLGATE_URL"),
    )
    .on("option:url", rejectEmptyUrl)
    .option("--token-file <file>", "the file of its token (default: TOLLGATE_TOKEN)")
    .option("--insecure", "send the token over http, where others can read it")
    .option("--actor <name>", "the name recorded with a change (default: cli; not with --url)")
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  defineServe(program);
  defineKeys(program);
  defineConnections(program);
  defineBudgets(program);
  defineRateLimits(program);
  defineAdminTokens(program);
  defineApply(program);
  defineActivity(program);
  defineSteps(program);
  defineSessions(program);
  defineDecisions(program);
  defineChanges(program);
  defineEvidence(program);
  defineExport(program);
  defineGateway(program);
  defineMaintenance(program);
  defineCheck(program);
  defineSchema(program);
  defineImport(program);
  rejectSecondValues(program);
  defineHelp(program);
  return program;
}

/** The command would work on the gateway of this machine, if a script has forgotten to set a variable. */
function rejectEmptyUrl(url: string): void {
  if (url === "") throw new CommandError("--url is empty", 2);
}

/** Commander's own `help` would ignore a second word, and print everything for an unknown one without naming it. */
function defineHelp(group: Command): void {
  if (group.commands.length === 0) return;
  group.commands.forEach(defineHelp);
  group
    .helpCommand(false)
    .command("help [command...]")
    .description("show the help of a command")
    .action((names: readonly string[]) => {
      let command = group;
      for (const name of names) {
        const inside = command.commands.find((each) => each.name() === name);
        if (!inside)
          throw new CommandError(`unknown command '${names.map(printable).join(" ")}'`, 2);
        command = inside;
      }
      command.help();
    });
}

/** Commander keeps the last value of an option that takes one, and would ignore the others without an error. */
function rejectSecondValues(command: Command): void {
  const given = new Map<string, Option>();
  for (const option of command.options)
    command.on(`option:${option.name()}`, () => {
      const name = option.attributeName();
      const before = given.get(name);
      given.set(name, option);
      const isSameFlag = before === option && !option.required;
      // Options that can be repeated collect their values.
      if (!before || isSameFlag || typeof command.getOptionValue(name) === "object") return;
      throw new CommandError(
        before === option
          ? `option '${option.flags}' takes one value and is given twice`
          : `pass either ${before.long} or ${option.long}`,
        2,
      );
    });
  command.commands.forEach(rejectSecondValues);
}

function version(): string {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  );
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "unknown";
}
