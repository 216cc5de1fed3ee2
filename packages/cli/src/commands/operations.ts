import type { UsageDifference, UsageReconciliationOptions } from "@tollgate/core";
import { type Command, Option } from "commander";
import { oneOf, timeRange, wholeNumber } from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { globalsOf, optionsOf } from "../globals.ts";
import { print } from "../print.ts";
import { type Column, formatTable, printable } from "../table.ts";
import { usd } from "../usd.ts";
import {
  organizationScope,
  requireLocal,
  requireStore,
  withAdministration,
  withGateway,
  withRecords,
} from "../with-administration.ts";

export function defineMaintenance(program: Command): void {
  program
    .command("migrate")
    .description("create or upgrade the store's schema; safe at any time")
    .option("--check", "change nothing, and fail unless the schema is up to date")
    .action(migrate);
  program.command("recover").description("settle the Steps of processes that died").action(recover);
  program.command("sweep").description("remove records older than their retention").action(sweep);
  const usage = program
    .command("usage")
    .description("hourly sums of usage")
    .command("reconcile")
    .description("add up Steps again, and fail if hourly sums differ")
    .option("--organization <id>", "only this organization (default: all)");
  timeRange(
    usage,
    "only from the hour of this time on (default: 30 days ago)",
    "only before the hour of this time",
  )
    .option("--repair", "add the differences to the sums")
    .action(reconcileUsage);
}

async function migrate(_options: unknown, command: Command): Promise<void> {
  const { check } = optionsOf<{ readonly check?: boolean }>(command);
  await withGateway(command, async (gateway) => {
    await (check ? requireStore(gateway) : gateway.ready());
    print(globalsOf(command).json, { upToDate: true }, "the store is up to date");
  });
}

async function recover(_options: unknown, command: Command): Promise<void> {
  await withAdministration(command, async (administration, { json }) => {
    const recovered = await administration.recover();
    print(json, { recovered }, `Steps recovered: ${recovered}`);
  });
}

async function sweep(_options: unknown, command: Command): Promise<void> {
  await withAdministration(command, async (administration, { json }) => {
    const removed = await administration.sweep();
    print(json, { removed }, `Responses, Steps and transcripts removed: ${removed}`);
  });
}

interface ReconcileOptions extends Omit<UsageReconciliationOptions, "organizationId"> {
  readonly organization?: string;
}

const differenceColumns: readonly Column<UsageDifference>[] = [
  { heading: "HOUR", of: ({ hour }) => hour },
  { heading: "ORGANIZATION", of: ({ organizationId }) => organizationId },
  { heading: "USER", of: ({ userId }) => userId },
  { heading: "KEY", of: ({ keyId }) => keyId },
  { heading: "MODELS", of: ({ models }) => models.join(", ") },
  { heading: "STEPS", of: ({ missing }) => missing.steps, right: true },
  { heading: "TOKENS", of: ({ missing }) => missing.totalTokens, right: true },
  { heading: "USD", of: ({ missing }) => usd(missing.costNanoUsd), right: true },
];

async function reconcileUsage(_options: unknown, command: Command): Promise<void> {
  const { organization, ...range } = optionsOf<ReconcileOptions>(command);
  const options: UsageReconciliationOptions = {
    ...range,
    organizationId: organizationScope(organization),
  };
  const run = options.repair ? withAdministration : withRecords;
  await run(command, async (administration, { json }) => {
    const result = await administration.reconcileUsage(options);
    const { steps, differences, isCut, repaired } = result;
    const text = differences.length === 0 ? [] : [formatTable(differences, differenceColumns)];
    if (isCut) text.push("There are more differences.");
    text.push(`Steps: ${steps}, differences repaired: ${repaired}`);
    print(json, result, text.join("\n\n"));
    if (differences.length > 0)
      throw new CommandError("some hourly sums differed from their Steps");
  });
}

interface CheckOptions {
  readonly strict?: boolean;
  readonly store?: boolean;
}

export function defineCheck(program: Command): void {
  program
    .command("check")
    .description("load and show the configuration, and warn of settings that have no effect")
    .option("--strict", "fail if there are warnings")
    .option("--store", "also open the store without changes, and fail unless it is up to date")
    .action(async (_options: unknown, command: Command) => {
      requireLocal(command);
      const { runCheck } = await import("../run-check.ts");
      await runCheck({ ...globalsOf(command), ...optionsOf<CheckOptions>(command) });
    });
}

export function defineSchema(program: Command): void {
  program
    .command("schema")
    .description("JSON Schemas for editors")
    .command("config")
    .description("print the schema of configuration files in JSON or YAML")
    .action(async () => {
      const { configurationJsonSchema } = await import("../configuration/data-schema.ts");
      const schema = await configurationJsonSchema();
      process.stdout.write(`${JSON.stringify(schema, null, 2)}\n`);
    });
}

export function defineImport(program: Command): void {
  program
    .command("import")
    .description("configurations of other gateways")
    .command("litellm <file>")
    .description(
      "convert LiteLLM's config.yaml to a configuration file, and warn of what it leaves out",
    )
    .action(importFile);
}

async function importFile(file: string, _options: unknown, command: Command): Promise<void> {
  const [{ readDataFile }, { importLitellm }, { stringify }] = await Promise.all([
    import("../configuration/read-file.ts"),
    import("../import/litellm.ts"),
    import("yaml"),
  ]);
  const { configuration, warnings } = importLitellm(await readDataFile(file));
  if (!("providers" in configuration)) throw new CommandError(`${file}: ${warnings.join(" ")}`);
  for (const warning of warnings) process.stderr.write(`warning: ${printable(warning)}\n`);
  const { json } = globalsOf(command);
  process.stdout.write(
    json ? `${JSON.stringify(configuration, null, 2)}\n` : stringify(configuration),
  );
}

interface ServeOptions {
  readonly port?: number;
  readonly host?: string;
  readonly closeWithin?: number;
  readonly drainDelay?: number;
  readonly firstKey?: boolean;
  readonly log?: "warnings" | "requests";
  readonly metricsPort?: number;
  readonly adminPort?: number;
  readonly adminHost?: string;
}

export function defineServe(program: Command): void {
  program
    .command("serve")
    .description("answer requests until SIGINT or SIGTERM")
    .addOption(
      new Option("--port <port>", "port to listen on, 0 for a free one (default: 8787)")
        .argParser(wholeNumber(0, 65_535))
        .env("PORT"),
    )
    .addOption(new Option("--host <host>", "address to listen on (default: 127.0.0.1)").env("HOST"))
    .option(
      "--close-within <seconds>",
      "how long a shutdown may take; answers that take longer end with an error (default: 25)",
      wholeNumber(1, 3_600),
    )
    .option(
      "--drain-delay <seconds>",
      "time to keep listening after /readyz turns 503, part of the shutdown (default: 0)",
      wholeNumber(0, 3_600),
    )
    .option(
      "--log <what>",
      "warnings: log failed requests and warnings; requests: every request as well (default: warnings)",
      oneOf("warnings", "requests"),
    )
    .option(
      "--metrics-port <port>",
      "also serve metrics to Prometheus, at /metrics on this port (default: off)",
      wholeNumber(1, 65_535),
    )
    .option(
      "--admin-port <port>",
      "also serve the admin API, on this port; 0 for a free one (default: off)",
      wholeNumber(0, 65_535),
    )
    .option("--admin-host <host>", "address of the admin API (default: 127.0.0.1)")
    .option("--no-first-key", "create and print no API key when none exists")
    .action(async (_options: unknown, command: Command) => {
      requireLocal(command);
      const { adminHost, adminPort } = optionsOf<ServeOptions>(command);
      if (adminHost !== undefined && adminPort === undefined)
        throw new CommandError("--admin-host requires --admin-port", 2);
      const { runServer } = await import("../run-server.ts");
      await runServer({ ...globalsOf(command), ...optionsOf<ServeOptions>(command) });
    });
}
