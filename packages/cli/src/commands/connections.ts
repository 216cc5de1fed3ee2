import type { ConnectionRecord } from "@tollgate/core";
import type { Command } from "commander";
import { listAction } from "../actions.ts";
import { listCommand } from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { print, printRecord } from "../print.ts";
import { maxSecretBytes, secretInVariable, withoutLineEnd } from "../secrets.ts";
import type { Column } from "../table.ts";
import { withAdministration, withRecords } from "../with-administration.ts";

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
      ({ connections }, scope, page) => connections.list(scope, page),
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
  const { organization } = optionsOf<ConnectionOptions>(command);
  const reference = { organizationId: organization, gateway: name };
  await withRecords(command, async ({ connections }, { json }) =>
    printRecord(json, await connections.get(reference)),
  );
}

async function set(name: string, _options: unknown, command: Command): Promise<void> {
  const { organization, fromEnvironment } = optionsOf<ConnectionOptions>(command);
  const apiKey = await readSecret(fromEnvironment);
  const setting = { organizationId: organization, gateway: name, apiKey };
  await withAdministration(command, async ({ connections }, { json, acting }) =>
    printRecord(json, await connections.set({ ...setting, ...acting })),
  );
}

async function remove(name: string, _options: unknown, command: Command): Promise<void> {
  const { organization } = optionsOf<ConnectionOptions>(command);
  const reference = { organizationId: organization, gateway: name };
  await withAdministration(command, async ({ connections }, { json, acting }) => {
    await connections.remove({ ...reference, ...acting });
    print(json, { ...reference, removed: true }, `removed ${organization}'s ${name}`);
  });
}

async function reseal(_options: unknown, command: Command): Promise<void> {
  await withAdministration(command, async ({ connections }, { json, acting }) => {
    const { resealed, failed } = await connections.reseal(acting);
    print(json, { resealed, failed }, `Credentials resealed: ${resealed}`);
    if (failed > 0)
      throw new CommandError(`${failed} credentials could not be resealed and are unchanged`);
  });
}

/** Reads a secret from an environment variable, or else from standard input. Removes one line end. */
async function readSecret(variable: string | undefined): Promise<string> {
  if (variable !== undefined) return secretInVariable(variable);
  const secret = process.stdin.isTTY ? "" : withoutLineEnd(await standardInput());
  if (secret !== "") return secret;
  throw new CommandError(
    "pass the secret on standard input, or name its variable with --from-environment",
    2,
  );
}

async function standardInput(): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of process.stdin) {
    const read = Buffer.from(part);
    parts.push(read);
    bytes += read.length;
    if (bytes > maxSecretBytes) throw new CommandError("the secret on standard input is too long");
  }
  return Buffer.concat(parts).toString();
}
