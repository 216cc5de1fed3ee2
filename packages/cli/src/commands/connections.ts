import type { ConnectionRecord } from "@tollgate/core";
import type { Command } from "commander";
import { listAction } from "../actions.ts";
import { listCommand } from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { withGateway } from "../open-gateway.ts";
import { print, printRecord } from "../print.ts";
import type { Column } from "../table.ts";

const columns: readonly Column<ConnectionRecord>[] = [
  { heading: "organization", of: (connection) => connection.organizationId },
  { heading: "gateway", of: (connection) => connection.gateway },
  { heading: "created", of: (connection) => connection.createdAt },
  { heading: "updated", of: (connection) => connection.updatedAt },
  { heading: "wrapped by", of: (connection) => connection.keyId },
];

interface ConnectionOptions {
  readonly organization: string;
  readonly fromEnvironment?: string;
}

export function defineConnections(program: Command): void {
  const noun = program
    .command("connections")
    .description("the customers' own Gateway API keys, sealed");
  listCommand(noun, "list connections by organization and gateway").action(
    listAction<object, ConnectionRecord>(
      (gateway, scope, page) => gateway.connections.list(scope, page),
      columns,
    ),
  );
  connectionCommand(noun, "get", "show one connection without its credential").action(get);
  connectionCommand(noun, "set", "seal a credential from standard input")
    .option("--from-environment <variable>", "read the credential from this variable instead")
    .action(set);
  connectionCommand(noun, "remove", "remove a credential").action(remove);
  noun
    .command("reseal")
    .description("wrap all data keys with the current key-encryption key")
    .action(reseal);
}

function connectionCommand(noun: Command, name: string, description: string): Command {
  return noun
    .command(`${name} <gateway>`)
    .description(description)
    .requiredOption("--organization <id>", "the organization of the credential");
}

async function get(name: string, _options: unknown, command: Command): Promise<void> {
  const { organization, config, json } = optionsOf<ConnectionOptions>(command);
  const reference = { organizationId: organization, gateway: name };
  await withGateway(config, async (gateway) =>
    printRecord(json, await gateway.connections.get(reference)),
  );
}

async function set(name: string, _options: unknown, command: Command): Promise<void> {
  const { organization, fromEnvironment, config, json, actor } =
    optionsOf<ConnectionOptions>(command);
  const apiKey = await readSecret(fromEnvironment);
  const setting = { organizationId: organization, gateway: name, apiKey, actor };
  await withGateway(config, async (gateway) =>
    printRecord(json, await gateway.connections.set(setting)),
  );
}

async function remove(name: string, _options: unknown, command: Command): Promise<void> {
  const { organization, config, json, actor } = optionsOf<ConnectionOptions>(command);
  const reference = { organizationId: organization, gateway: name };
  await withGateway(config, async (gateway) => {
    await gateway.connections.remove({ ...reference, actor });
    print(json, { ...reference, removed: true }, `removed ${organization}'s ${name}`);
  });
}

async function reseal(_options: unknown, command: Command): Promise<void> {
  const { config, json, actor } = optionsOf(command);
  await withGateway(config, async (gateway) => {
    const { resealed, failed } = await gateway.connections.reseal({ actor });
    print(json, { resealed, failed }, `Credentials resealed: ${resealed}`);
    if (failed > 0)
      throw new CommandError(`${failed} credentials could not be resealed and are unchanged`);
  });
}

/** No secret is longer than this. */
const maxBytes = 65_536;

/** Reads a secret from an environment variable, or else from standard input. Removes one line end. */
async function readSecret(variable: string | undefined): Promise<string> {
  const text = variable === undefined ? await standardInput() : fromEnvironment(variable);
  return text.replace(/\r?\n$/, "");
}

function fromEnvironment(variable: string): string {
  const secret = process.env[variable];
  if (secret !== undefined && secret !== "") return secret;
  throw new CommandError(`the environment variable ${variable} is not set or empty`);
}

async function standardInput(): Promise<string> {
  if (process.stdin.isTTY)
    throw new CommandError(
      "pass the secret on standard input, or name its variable with --from-environment",
      2,
    );
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of process.stdin) {
    const read = Buffer.from(part);
    parts.push(read);
    bytes += read.length;
    if (bytes > maxBytes) throw new CommandError("the secret on standard input is too long");
  }
  return Buffer.concat(parts).toString();
}
