import type { Duration, KeyRecord, KeyWithSecret } from "@tollgate/core";
import { type LeadingSystem, leadingSystems } from "@tollgate/core/store";
import type { Command } from "commander";
import { listAction, recordAction } from "../actions.ts";
import {
  alias,
  duration,
  isoTime,
  listCommand,
  oneOf,
  type RecordOptions,
  recordCommand,
  repeated,
} from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { print, printRecord } from "../print.ts";
import type { Column } from "../table.ts";
import { organizationScope, withAdministration } from "../with-administration.ts";

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
  readonly model?: readonly string[];
  readonly alias?: Readonly<Record<string, string>>;
  readonly leadingSystem?: LeadingSystem | "gateway";
  readonly expiresAt?: string;
}

interface CreateOptions extends Terms {
  readonly organization: string;
  readonly user: string;
  readonly label: string;
}

interface UpdateOptions extends Terms, RecordOptions {
  readonly allModels?: true;
  readonly removeAliases?: true;
  readonly neverExpires?: true;
}

interface ListFilter {
  readonly user?: string;
  readonly label?: string;
  readonly live?: boolean;
}

export function defineKeys(program: Command): void {
  const noun = program.command("keys").description("API keys");
  listCommand(noun, "list keys, newest first")
    .option("--user <id>", "only this user")
    .option("--label <label>", "only this label")
    .option("--live", "only active keys")
    .option("--no-live", "only revoked or expired keys")
    .action(
      listAction<ListFilter, KeyRecord>(
        ({ keys }, { user, ...filter }, page) =>
          keys.list({ ...filter, ...(user === undefined ? {} : { userId: user }) }, page),
        columns,
      ),
    );
  recordCommand(noun, "get", "show one key without its secret").action(
    recordAction(({ keys }, reference) => keys.get(reference)),
  );
  withTerms(
    noun
      .command("create")
      .description("create a key and print its secret once")
      .requiredOption("--organization <id>", "the organization of the key")
      .requiredOption("--user <id>", "the user of the key")
      .requiredOption("--label <label>", "the name of the key in activity"),
  ).action(create);
  withTerms(recordCommand(noun, "update", "change the passed values and keep the others"))
    .option("--label <label>", "the new name of the key in activity")
    .option("--all-models", "allow all models that the policy allows")
    .option("--remove-aliases", "remove all aliases")
    .option("--never-expires", "remove the expiry")
    .action(update);
  recordCommand(noun, "rotate", "replace the secret of a key and print the new one once")
    .option(
      "--overlap <duration>",
      "how long the old secret still works, such as 24h (default: not at all)",
      duration,
    )
    .action(rotate);
  noun
    .command("revoke [id]")
    .description("revoke a key, or all keys of a user, from the next request on")
    .option("--organization <id>", "only in this organization (default: any)")
    .option("--user <id>", "all keys of this user; requires --organization")
    .action(revoke);
}

function withTerms(command: Command): Command {
  return command
    .option("--default-data-class <class>", "the data class of requests without one")
    .option("--minimum-data-class <class>", "the lowest data class of any request")
    .option("--model <pattern>", "only matching models (repeatable)", repeated)
    .option("--alias <name=model>", "a name that clients may send for a model (repeatable)", alias)
    .option(
      "--leading-system <place>",
      "where leading system messages belong: history or apart; or gateway, which decides by default",
      oneOf(...leadingSystems, "gateway"),
    )
    .option("--expires-at <time>", "when the key expires, in ISO 8601", isoTime);
}

async function create(_options: unknown, command: Command): Promise<void> {
  const options = optionsOf<CreateOptions>(command);
  const { organization, user, alias: aliases, model: models, leadingSystem, ...rest } = options;
  const creation = {
    organizationId: organization,
    userId: user,
    ...rest,
    ...(models && { models }),
    ...(aliases && { aliases }),
    ...placed(leadingSystem),
  };
  await withAdministration(command, async ({ keys }, { json, acting }) =>
    printSecret(json, await keys.create({ ...creation, ...acting })),
  );
}

/** `gateway` leaves the place of leading system messages to the gateway. */
function placed(leadingSystem: Terms["leadingSystem"]) {
  return leadingSystem && { leadingSystem: leadingSystem === "gateway" ? null : leadingSystem };
}

async function update(id: string, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<UpdateOptions>(command);
  const { organization, allModels, neverExpires, ...rest } = options;
  const { alias: aliases, removeAliases, model: models, leadingSystem, ...terms } = rest;
  if (allModels && models) throw new CommandError("pass either --model or --all-models", 2);
  if (removeAliases && aliases)
    throw new CommandError("pass either --alias or --remove-aliases", 2);
  if (neverExpires && terms.expiresAt)
    throw new CommandError("pass either --expires-at or --never-expires", 2);
  const change = {
    ...terms,
    ...placed(leadingSystem),
    ...(allModels ? { models: null } : models && { models }),
    ...(removeAliases ? { aliases: null } : aliases && { aliases }),
    ...(neverExpires ? { expiresAt: null } : {}),
  };
  if (Object.keys(change).length === 0) {
    const flags = command.options
      .map(({ long }) => long)
      .filter((flag) => flag !== "--organization");
    throw new CommandError(
      `pass what to change: ${flags.join(", ").replace(/, (?=[^,]*$)/, " or ")}`,
      2,
    );
  }
  const organizationId = organizationScope(organization);
  await withAdministration(command, async ({ keys }, { json, acting }) =>
    printRecord(json, await keys.update({ organizationId, id, ...change, ...acting })),
  );
}

async function rotate(id: string, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<RecordOptions & { readonly overlap?: Duration }>(command);
  const { organization, ...rest } = options;
  const organizationId = organizationScope(organization);
  await withAdministration(command, async ({ keys }, { json, acting }) =>
    printSecret(json, await keys.rotate({ organizationId, id, ...rest, ...acting })),
  );
}

async function revoke(id: string | undefined, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<RecordOptions & { readonly user?: string }>(command);
  const { organization, user } = options;
  if ((id === undefined) === (user === undefined))
    throw new CommandError("pass either the id of a key or --user", 2);
  if (user !== undefined && organization === undefined)
    throw new CommandError("--user requires --organization", 2);
  const organizationId = organizationScope(organization);
  await withAdministration(command, async ({ keys }, { json, acting }) => {
    if (id !== undefined)
      return printRecord(json, await keys.revoke({ organizationId, id, ...acting }));
    const ofUser = { organizationId: organization ?? "", userId: user ?? "", ...acting };
    const { revoked } = await keys.revoke(ofUser);
    const text = revoked === 0 ? "this user has no active keys" : `Keys revoked: ${revoked}`;
    print(json, { revoked }, text);
  });
}

function printSecret(json: boolean | undefined, made: KeyWithSecret): void {
  printRecord(json, made, { id: made.key.id, label: made.key.label, secret: made.secret });
}
