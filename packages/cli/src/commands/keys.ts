import type { KeyRecord } from "@tollgate/core";
import type { Command } from "commander";
import { listAction, recordAction } from "../actions.ts";
import { isoTime, listCommand, recordCommand, repeated } from "../arguments.ts";
import { optionsOf } from "../globals.ts";
import { withGateway } from "../open-gateway.ts";
import { printRecord } from "../print.ts";
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
  listCommand(noun, "keys, newest first")
    .option("--user <id>", "only this user's")
    .action(
      listAction<{ readonly user?: string }, KeyRecord>(
        (gateway, { user, ...scope }, page) =>
          gateway.keys.list({ ...scope, ...(user === undefined ? {} : { userId: user }) }, page),
        columns,
      ),
    );
  recordCommand(noun, "get", "one key, without its secret").action(
    recordAction((gateway, { organizationId, id }) => gateway.keys.get({ organizationId, id })),
  );
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
  recordCommand(noun, "revoke", "refuse a key from the next request on").action(
    recordAction((gateway, reference) => gateway.keys.revoke(reference)),
  );
}

async function create(_options: unknown, command: Command): Promise<void> {
  const { organization, user, config, json, ...rest } = optionsOf<CreateOptions>(command);
  await withGateway(config, async (gateway) => {
    const made = await gateway.keys.create({ organizationId: organization, userId: user, ...rest });
    printRecord(json, made, { id: made.key.id, label: made.key.label, secret: made.secret });
  });
}
