import type { Duration, KeyRecord, KeyWithSecret } from "@tollgate/core";
import type { Command } from "commander";
import { listAction, recordAction } from "../actions.ts";
import {
  duration,
  isoTime,
  listCommand,
  type RecordOptions,
  recordCommand,
  repeated,
} from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { organizationScope, withGateway } from "../open-gateway.ts";
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

interface Terms {
  readonly label?: string;
  readonly defaultDataClass?: string;
  readonly minimumDataClass?: string;
  readonly models?: readonly string[];
  readonly expiresAt?: string;
}

interface CreateOptions extends Terms {
  readonly organization: string;
  readonly user: string;
  readonly label: string;
}

interface UpdateOptions extends Terms, RecordOptions {
  readonly allModels?: true;
  readonly neverExpires?: true;
}

interface ListFilter {
  readonly user?: string;
  readonly label?: string;
  readonly live?: boolean;
}

export function defineKeys(program: Command): void {
  const noun = program.command("keys").description("API keys: who may call");
  listCommand(noun, "keys, newest first")
    .option("--user <id>", "only this user's")
    .option("--label <label>", "only of this label")
    .option("--live", "only keys that work")
    .option("--no-live", "only keys that are revoked or expired")
    .action(
      listAction<ListFilter, KeyRecord>(
        (gateway, { user, ...filter }, page) =>
          gateway.keys.list({ ...filter, ...(user === undefined ? {} : { userId: user }) }, page),
        columns,
      ),
    );
  recordCommand(noun, "get", "one key, without its secret").action(
    recordAction((gateway, { organizationId, id }) => gateway.keys.get({ organizationId, id })),
  );
  withTerms(
    noun
      .command("create")
      .description("make a key and print its secret, this once")
      .requiredOption("--organization <id>", "the organization it acts for")
      .requiredOption("--user <id>", "the user it acts for")
      .requiredOption("--label <label>", "what activity calls it"),
  ).action(create);
  withTerms(recordCommand(noun, "update", "change what is given, and nothing else"))
    .option("--label <label>", "what activity calls it from now on")
    .option("--all-models", "take the limit of models away; the policy's stays")
    .option("--never-expires", "take its end away")
    .action(update);
  recordCommand(noun, "rotate", "give a key a new secret and print it, this once")
    .option("--overlap <duration>", "how long the old secret still works, such as 24h", duration)
    .action(rotate);
  noun
    .command("revoke [id]")
    .description("refuse a key, or every key of a user, from the next request on")
    .option("--organization <id>", "only if it belongs to this organization (default: to any)")
    .option("--user <id>", "every key of this user; needs --organization")
    .action(revoke);
}

function withTerms(command: Command): Command {
  return command
    .option("--default-data-class <class>", "the class of requests that name none")
    .option("--minimum-data-class <class>", "the class below which nothing is treated")
    .option("--models <pattern>", "only models that match; may be given several times", repeated)
    .option("--expires-at <time>", "when it stops working, in ISO 8601", isoTime);
}

async function create(_options: unknown, command: Command): Promise<void> {
  const { organization, user, config, json, ...rest } = optionsOf<CreateOptions>(command);
  await withGateway(config, async (gateway) => {
    const made = await gateway.keys.create({ organizationId: organization, userId: user, ...rest });
    printSecret(json, made);
  });
}

async function update(id: string, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<UpdateOptions>(command);
  const { organization, config, json, allModels, neverExpires, ...terms } = options;
  if (allModels && terms.models) throw new CommandError("give --models or --all-models", 2);
  if (neverExpires && terms.expiresAt)
    throw new CommandError("give --expires-at or --never-expires", 2);
  const change = {
    ...terms,
    ...(allModels ? { models: null } : {}),
    ...(neverExpires ? { expiresAt: null } : {}),
  };
  const organizationId = organizationScope(organization);
  await withGateway(config, async (gateway) =>
    printRecord(json, await gateway.keys.update({ organizationId, id, ...change })),
  );
}

async function rotate(id: string, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<RecordOptions & { readonly overlap?: Duration }>(command);
  const { organization, config, json, ...rest } = options;
  const organizationId = organizationScope(organization);
  await withGateway(config, async (gateway) =>
    printSecret(json, await gateway.keys.rotate({ organizationId, id, ...rest })),
  );
}

async function revoke(id: string | undefined, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<RecordOptions & { readonly user?: string }>(command);
  const { organization, user, config, json, actor } = options;
  if ((id === undefined) === (user === undefined))
    throw new CommandError("name a key by its id, or a user with --user", 2);
  if (user !== undefined && organization === undefined)
    throw new CommandError("--user needs --organization: a user is one of an organization", 2);
  const organizationId = organizationScope(organization);
  await withGateway(config, async ({ keys }) => {
    if (id !== undefined)
      return printRecord(json, await keys.revoke({ organizationId, id, actor }));
    const ofUser = { organizationId: organization ?? "", userId: user ?? "", actor };
    const page = { data: await keys.revoke(ofUser), nextCursor: null };
    printPage(json, page, columns, "no key was revoked: this user has none left");
  });
}

function printSecret(json: boolean | undefined, made: KeyWithSecret): void {
  printRecord(json, made, { id: made.key.id, label: made.key.label, secret: made.secret });
}
