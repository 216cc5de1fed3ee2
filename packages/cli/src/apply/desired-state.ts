import type { BudgetConfiguration, CreateKeyOptions, RateLimitConfiguration } from "@tollgate/core";
import {
  administrationSchemas,
  type Problem,
  pathOf,
  problemAt,
  type Schema,
  text,
  tryRead,
  z,
} from "@tollgate/core/schemas";
import { ConfigurationError } from "../configuration/configuration-error.ts";
import { fillIn } from "../configuration/fill-in.ts";
import { shownCredentials } from "../configuration/hide-credentials.ts";
import { readDataFile } from "../configuration/read-file.ts";

/** Where a credential is: in an environment variable, or in a file. A file of organizations never contains one. */
export type CredentialSource = { readonly variable: string } | { readonly file: string };

/** A connection that an organization should have. */
export interface DesiredConnection {
  readonly gateway: string;
  readonly source: CredentialSource;
}

/** The desired records of one organization. Budgets, rate limits and keys are named `<organization>/<name>`. */
export interface DesiredOrganization {
  readonly id: string;
  readonly keys: readonly CreateKeyOptions[];
  readonly budgets: readonly BudgetConfiguration[];
  readonly rateLimits: readonly RateLimitConfiguration[];
  readonly connections: readonly DesiredConnection[];
}

/** The name of a record that `apply` makes. By it, `apply` recognizes later the records that it may change and remove. */
export function ownName(organization: string, name: string): string {
  return `${organization}/${name}`;
}

const maxOrganizations = 1_000;
const maxMembers = 1_000;

/** A name is part of an id, which is at most 255 visible ASCII characters. */
const name = text(
  (value) => /^[\x21-\x2e\x30-\x7e]{1,120}$/.test(value),
  "must be a name of 1 to 120 visible ASCII characters without a slash",
);

const creation = administrationSchemas["keys.create"].shape;

const keySchema = z.strictObject({
  user: creation.userId,
  defaultDataClass: creation.defaultDataClass,
  minimumDataClass: creation.minimumDataClass,
  models: creation.models,
  aliases: creation.aliases,
  leadingSystem: creation.leadingSystem,
  expiresAt: creation.expiresAt,
});

const filled = z.string().check(z.minLength(1));

const connectionSchema: Schema<CredentialSource> = z.union(
  [z.strictObject({ variable: filled }), z.strictObject({ file: filled })],
  { error: "must be { variable } or { file }, which say where the credential is" },
);

/** Reads `Item` by name. The schema of a limit checks its members. */
function named<Item>(item: Schema<Item>, max = maxMembers) {
  return z.record(name, item).check(
    z.refine((items) => Object.keys(items).length <= max, {
      error: `must have at most ${max} members`,
    }),
  );
}

const limitSchema = z.looseObject({ scope: z.exactOptional(z.looseObject({})) });

const fileSchema = z.strictObject({
  organizations: named(
    z.strictObject({
      keys: z.exactOptional(named(keySchema)),
      budgets: z.exactOptional(named(limitSchema)),
      rateLimits: z.exactOptional(named(limitSchema)),
      connections: z.exactOptional(named(connectionSchema)),
    }),
    maxOrganizations,
  ),
});

type OrganizationData = z.output<typeof fileSchema>["organizations"][string];

/**
 * Reads a JSON or YAML file of organizations, with variables as in configuration files.
 * @throws ConfigurationError with every problem and its path
 */
export async function readDesiredState(file: string): Promise<readonly DesiredOrganization[]> {
  const { value, problems: unfilled } = fillIn(await readDataFile(file), process.env);
  if (unfilled.length > 0) throw new ConfigurationError(file, unfilled);
  const { value: data, problems } = tryRead(fileSchema, value, { noun: "member" });
  const found: Problem[] = [...shownCredentials(value), ...problems];
  const organizations = Object.entries(data?.organizations ?? {}).map(([id, organization]) =>
    desired(id, organization, found),
  );
  if (found.length > 0) throw new ConfigurationError(file, found);
  return organizations;
}

function desired(
  id: string,
  { keys = {}, budgets = {}, rateLimits = {}, connections = {} }: OrganizationData,
  problems: Problem[],
): DesiredOrganization {
  return {
    id,
    keys: Object.entries(keys).map(([name, { user, aliases = null, ...terms }]) => ({
      models: null,
      // A gateway records an empty set as none.
      aliases: Object.keys(aliases ?? {}).length === 0 ? null : aliases,
      leadingSystem: null,
      expiresAt: null,
      ...terms,
      organizationId: id,
      userId: user,
      label: ownName(id, name),
    })),
    budgets: limitsOf(id, { budgets }, administrationSchemas["budgets.create"], problems),
    rateLimits: limitsOf(id, { rateLimits }, administrationSchemas["rateLimits.create"], problems),
    connections: Object.entries(connections).map(([gateway, source]) => ({ gateway, source })),
  };
}

/** Reads budgets or rate limits with their own schema. Each counts its organization. */
function limitsOf<Limit>(
  organization: string,
  group: Readonly<Record<string, Readonly<Record<string, z.output<typeof limitSchema>>>>>,
  schema: Schema<Limit>,
  problems: Problem[],
): readonly Limit[] {
  return Object.entries(group).flatMap(([noun, limits]) =>
    Object.entries(limits).flatMap(([name, limit]) => {
      const path = pathOf("organizations", [organization, noun, name]);
      const taken = [
        ...["id", "actor"].filter((member) => member in limit),
        ...("organization" in (limit.scope ?? {}) ? ["scope.organization"] : []),
      ];
      for (const member of taken)
        problems.push(
          problemAt(`${path}.${member}`, "is not allowed: its position in the file sets it"),
        );
      if (taken.length > 0) return [];
      const complete = {
        ...limit,
        id: ownName(organization, name),
        scope: { ...limit.scope, organization },
      };
      const result = tryRead(schema, complete, { noun: "member", path });
      problems.push(...result.problems);
      return result.value === null ? [] : [result.value];
    }),
  );
}
