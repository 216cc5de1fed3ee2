import type { AdminTokenRecord } from "@tollgate/core";
import { adminRoles } from "@tollgate/core/administration";
import type { Command } from "commander";
import {
  isoTime,
  type ListOptions,
  oneOf,
  pageOf,
  pageOptions,
  platformListCommand,
  repeated,
} from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { printPage, printRecord } from "../print.ts";
import type { Column } from "../table.ts";
import { withAdministration, withRecords } from "../with-administration.ts";

const columns: readonly Column<AdminTokenRecord>[] = [
  { heading: "id", of: (token) => token.id },
  { heading: "label", of: (token) => token.label },
  { heading: "prefix", of: (token) => token.prefix },
  { heading: "role", of: (token) => token.role },
  {
    heading: "organizations",
    of: ({ organizations }) => (organizations === "all" ? "all" : organizations.join(", ")),
  },
  { heading: "transcripts", of: (token) => token.transcripts?.upTo ?? null },
  { heading: "last used", of: (token) => token.lastUsedAt },
  { heading: "expires", of: (token) => token.expiresAt },
  { heading: "revoked", of: (token) => token.revokedAt },
];

interface CreateOptions {
  readonly label: string;
  readonly role: AdminTokenRecord["role"];
  readonly organization?: readonly string[];
  readonly allOrganizations?: true;
  readonly transcriptsUpTo?: string;
  readonly expiresAt?: string;
}

export function defineAdminTokens(program: Command): void {
  const noun = program.command("admin-tokens").description("tokens for the admin API");
  pageOptions(platformListCommand(noun, "list tokens, newest first")).action(
    async (_options: unknown, command: Command) => {
      const page = pageOf(optionsOf<ListOptions>(command));
      await withRecords(command, async ({ adminTokens }, { json }) =>
        printPage(json, await adminTokens.list(page), columns),
      );
    },
  );
  noun
    .command("get <id>")
    .description("show one token without its secret")
    .action(async (id: string, _options: unknown, command: Command) => {
      await withRecords(command, async ({ adminTokens }, { json }) =>
        printRecord(json, await adminTokens.get({ id })),
      );
    });
  noun
    .command("create")
    .description("create a token and print it once")
    .requiredOption("--label <label>", "who holds it, for the records of changes")
    .requiredOption("--role <role>", "viewer, operator or admin", oneOf(...adminRoles))
    .option("--organization <id>", "an organization to administer (repeatable)", repeated)
    .option("--all-organizations", "administer every organization, now and later")
    .option("--transcripts-up-to <class>", "may read content up to this data class")
    .option("--expires-at <time>", "when it expires, in ISO 8601 (default: in 90 days)", isoTime)
    .action(create);
  noun
    .command("revoke <id>")
    .description("revoke a token, from the next request on")
    .action(async (id: string, _options: unknown, command: Command) => {
      await withAdministration(command, async ({ adminTokens }, { json, acting }) =>
        printRecord(json, await adminTokens.revoke({ id, ...acting })),
      );
    });
}

async function create(_options: unknown, command: Command): Promise<void> {
  const options = optionsOf<CreateOptions>(command);
  const { label, role, organization, allOrganizations, transcriptsUpTo, expiresAt } = options;
  if ((organization === undefined) === (allOrganizations === undefined))
    throw new CommandError("pass either --organization or --all-organizations", 2);
  const creation = {
    label,
    role,
    organizations: organization ?? ("all" as const),
    ...(transcriptsUpTo === undefined ? {} : { transcripts: { upTo: transcriptsUpTo } }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
  await withAdministration(command, async ({ adminTokens }, { json, acting }) => {
    const made = await adminTokens.create({ ...creation, ...acting });
    const { id, expiresAt: end } = made.token;
    printRecord(json, made, { id, label, expires: end, secret: made.secret });
  });
}
