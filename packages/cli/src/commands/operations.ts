import { type Command, Option } from "commander";
import { wholeNumber } from "../arguments.ts";
import { optionsOf } from "../globals.ts";
import { withGateway } from "../open-gateway.ts";
import { print } from "../print.ts";

export function defineMaintenance(program: Command): void {
  program
    .command("migrate")
    .description("create or upgrade the store's schema; safe at any time")
    .option("--check", "change nothing, and fail unless the schema is up to date")
    .action(migrate);
  program.command("recover").description("settle the Steps of processes that died").action(recover);
  program.command("sweep").description("remove records older than their retention").action(sweep);
}

async function migrate(_options: unknown, command: Command): Promise<void> {
  const { config, json, check } = optionsOf<{ readonly check?: boolean }>(command);
  await withGateway(config, async (gateway) => {
    await (check ? gateway.checkStore() : gateway.ready());
    print(json, { migrated: true }, "the store is up to date");
  });
}

async function recover(_options: unknown, command: Command): Promise<void> {
  const { config, json } = optionsOf(command);
  await withGateway(config, async (gateway) => {
    const recovered = await gateway.recover();
    print(json, { recovered }, `Steps recovered: ${recovered}`);
  });
}

async function sweep(_options: unknown, command: Command): Promise<void> {
  const { config, json } = optionsOf(command);
  await withGateway(config, async (gateway) => {
    const removed = await gateway.sweep();
    print(json, { removed }, `Responses, Steps and transcripts removed: ${removed}`);
  });
}

interface CheckOptions {
  readonly strict?: boolean;
  readonly store?: boolean;
}

export function defineCheck(program: Command): void {
  program
    .command("check")
    .description("load and show the configuration, and warn of settings without effect")
    .option("--strict", "fail if there are warnings")
    .option("--store", "also open the store without changes, and fail unless it is up to date")
    .action(async (_options: unknown, command: Command) => {
      const { runCheck } = await import("../run-check.ts");
      await runCheck(optionsOf<CheckOptions>(command));
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

interface ServeOptions {
  readonly port?: number;
  readonly host?: string;
  readonly closeWithin?: number;
  readonly drainDelay?: number;
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
      "time to keep listening after /readyz turned 503, part of the shutdown (default: 0)",
      wholeNumber(0, 3_600),
    )
    .action(async (_options: unknown, command: Command) => {
      const { runServer } = await import("../run-server.ts");
      await runServer(optionsOf<ServeOptions>(command));
    });
}
