import type { KeyRecord } from "@tollgate/core";
import type { Command } from "commander";
import {
  isoTime,
  type ListOptions,
  listCommand,
  pageOf,
  type RecordOptions,
  recordCommand,
  repeated,
} from "../arguments.ts";
import { optionsOf } from "../globals.ts";
import { tenantOf, withGateway } from "../open-gateway.ts";
import { printPage, printRecord } from "../print.ts";
import type { Column } from "../table.ts";

const columns: readonly Column<KeyRecord>[] = [
  { heading: "id", of: (key) => key.id },
  { heading: "organization", of: (key) => key.organizationId },
  { heading: "user", of: (key) => key.userId },
  { heading: "label", of: (key) => key.label },
  { heading: "prefix", of: (key) => key.prefix },
  { heading: "default class", of: (key) => key.defaultDataClass },
  { heading: "created", of: (key) => key.createdAt },
  { heading: "last used", of: (key) => key.lastUsedAt },
  { heading: "expires", of: (key) => key.expiresAt },
  { heading: "revoked", of: (key) => key.revokedAt },
];

interface CreateOptions {
  readonly organization: string;
  readonly user: string;
  readonly label: string;
  readonly defaultDataClass?: string;
  readonly minimumDataClass?: string;
  readonly models?: readonly string[];
  readonly expiresAt?: string;
}

export function defineKeys(program: Command): void {
  const noun = program.command("keys").description("API keys: who may call");
  listCommand(noun, "keys, newest first").option("--user <id>", "only this user's").action(list);
  recordCommand(noun, "get", "one key, without its secret").action(get);
  noun
    .command("create")
    .description("make a key and print its secret, this once")
    .requiredOption("--organization <id>", "the organization it acts for")
    .requiredOption("--user <id>", "the user it acts for")
    .requiredOption("--label <label>", "what activity calls it")
    .option("--default-data-class <class>", "the class of requests that name none")
    .option("--minimum-data-class <class>", "the class below which nothing is treated")
    .option("--models <pattern>", "only models that match; may be given several times", repeated)
    .option("--expires-at <time>", "when it stops working, in ISO 8601", isoTime)
    .action(create);
  recordCommand(noun, "revoke", "refuse a key from the next request on").action(revoke);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const options = optionsOf<ListOptions & { readonly user?: string }>(command);
  const { user, config, json } = options;
  const organizationId = tenantOf(options.organization);
  const only = user === undefined ? {} : { userId: user };
  await withGateway(config, async (gateway) =>
    printPage(json, await gateway.keys.list({ organizationId, ...only }, pageOf(options)), columns),
  );
}

async function get(id: string, _options: unknown, command: Command): Promise<void> {
  const { organization: organizationId, config, json } = optionsOf<RecordOptions>(command);
  await withGateway(config, async (gateway) =>
    printRecord(json, await gateway.keys.get({ organizationId, id })),
  );
}

async function create(_options: unknown, command: Command): Promise<void> {
  const { organization, user, config, json, ...rest } = optionsOf<CreateOptions>(command);
  await withGateway(config, async (gateway) => {
    const made = await gateway.keys.create({ organizationId: organization, userId: user, ...rest });
    printRecord(json, made, { id: made.key.id, label: made.key.label, secret: made.secret });
  });
}

async function revoke(id: string, _options: unknown, command: Command): Promise<void> {
  const { organization: organizationId, ...rest } = optionsOf<RecordOptions>(command);
  const { config, json, actor } = rest;
  await withGateway(config, async (gateway) =>
    printRecord(json, await gateway.keys.revoke({ organizationId, id, actor })),
  );
}
