import type {
  Administration,
  BudgetRecord,
  CreateKeyOptions,
  IfMatch,
  KeyRecord,
  RateLimitRecord,
  WithActor,
} from "@tollgate/core";
import { etagOf, toBudget, toRateLimit } from "@tollgate/core/administration";
import { CommandError } from "../failure.ts";
import { secretInFile, secretInVariable } from "../secrets.ts";
import { printable } from "../table.ts";
import { amount } from "../usd.ts";
import type { CredentialSource, DesiredOrganization } from "./desired-state.ts";
import { ownName } from "./desired-state.ts";

/** Keeps the secret of a new key. */
export type KeepSecret = (key: KeyRecord, secret: string) => Promise<void>;

/** One record, and what has to be done so that it is as the file says. */
export interface Change {
  readonly action: "create" | "update" | "remove" | "unchanged";
  readonly kind: "connection" | "budget" | "rate limit" | "key";
  readonly organizationId: string;
  readonly name: string;
  /** Each member that differs, with its value before and after. */
  readonly differences: readonly string[];
  /** Makes the change. */
  readonly make: (acting: WithActor, keep: KeepSecret) => Promise<void>;
}

/** Changes that a plan contains only on request. */
export interface PlanOptions {
  /** Whether to remove what `apply` made and the file no longer has. */
  readonly prune: boolean;
  /** Whether to set the credentials of connections that exist. */
  readonly replaceCredentials: boolean;
}

/** Compares an organization with what it should have, and changes nothing. */
export async function planOf(
  administration: Administration,
  desired: DesiredOrganization,
  { prune, replaceCredentials }: PlanOptions,
): Promise<readonly Change[]> {
  const changes = [
    ...(await planConnections(administration, desired, replaceCredentials)),
    ...(await planBudgets(administration, desired)),
    ...(await planRateLimits(administration, desired)),
    ...(await planKeys(administration, desired)),
  ];
  return changes.filter(({ action }) => prune || action !== "remove");
}

async function planConnections(
  { connections }: Administration,
  { id: organizationId, connections: desired }: DesiredOrganization,
  replace: boolean,
): Promise<readonly Change[]> {
  if (desired.length === 0) return [];
  const existing = new Set<string>();
  for await (const { gateway } of connections.list({ organizationId })) existing.add(gateway);
  return desired.map(({ gateway, source }) => {
    const exists = existing.has(gateway);
    const update = replace ? "update" : "unchanged";
    return {
      action: exists ? update : "create",
      kind: "connection",
      organizationId,
      name: gateway,
      differences: exists && replace ? ["credential"] : [],
      async make(acting) {
        const apiKey = await credentialAt(source);
        await connections.set({ organizationId, gateway, apiKey, ...acting });
      },
    };
  });
}

function credentialAt(source: CredentialSource): string | Promise<string> {
  return "variable" in source ? secretInVariable(source.variable) : secretInFile(source.file);
}

function planBudgets(
  { budgets }: Administration,
  { id: organizationId, budgets: desired }: DesiredOrganization,
): Promise<readonly Change[]> {
  return planLimits(
    { kind: "budget", organizationId },
    budgets,
    desired,
    (configuration, before) => {
      const after = toBudget(configuration);
      if (before !== undefined && (before.unit !== after.unit || before.period !== after.period))
        throw new CommandError(
          `budget ${printable(after.id)} counts ${before.unit} per ${before.period}, which can't change: give the new budget another name`,
        );
      return written(before && shownBudget(before), shownBudget(after));
    },
  );
}

function planRateLimits(
  { rateLimits }: Administration,
  { id: organizationId, rateLimits: desired }: DesiredOrganization,
): Promise<readonly Change[]> {
  return planLimits(
    { kind: "rate limit", organizationId },
    rateLimits,
    desired,
    (configuration, before) =>
      written(before && shownRateLimit(before), shownRateLimit(toRateLimit(configuration))),
  );
}

/** The methods that budgets and rate limits have in common. */
interface LimitNoun<Configuration, Row> {
  list(filter: { readonly organizationId: string }): AsyncIterable<Row>;
  create(configuration: Configuration & WithActor): Promise<unknown>;
  update(configuration: Configuration & IfMatch & WithActor): Promise<unknown>;
  remove(reference: { readonly id: string } & IfMatch & WithActor): Promise<void>;
}

async function planLimits<
  Configuration extends { readonly id: string },
  Row extends BudgetRecord | RateLimitRecord,
>(
  change: Pick<Change, "kind" | "organizationId">,
  noun: LimitNoun<Configuration, Row>,
  desired: readonly Configuration[],
  compare: (configuration: Configuration, before: Row | undefined) => ReturnType<typeof written>,
): Promise<readonly Change[]> {
  const { organizationId } = change;
  const existing = new Map<string, Row>();
  for await (const row of noun.list({ organizationId }))
    if (isOwn(organizationId, row)) existing.set(row.id, row);
  const wanted = desired.map((configuration): Change => {
    const before = existing.get(configuration.id);
    return {
      ...compare(configuration, before),
      ...change,
      name: configuration.id,
      async make(acting) {
        const whole = { ...configuration, ...acting };
        if (before === undefined) await noun.create(whole);
        else await noun.update({ ...whole, ...expecting(before) });
      },
    };
  });
  const remove = (id: string) => (acting: WithActor) =>
    noun.remove({ id, ...expecting(existing.get(id)), ...acting });
  return [...wanted, ...removals(existing, desired, change, remove)];
}

/** A key is found by its label. Keys without a secret are callers of an application, and not `apply`'s. */
async function planKeys(
  { keys }: Administration,
  { id: organizationId, keys: desired }: DesiredOrganization,
): Promise<readonly Change[]> {
  const existing = new Map<string, KeyRecord & { readonly id: string }>();
  for await (const key of keys.list({ organizationId, live: true })) {
    if (key.prefix === "" || !key.label.startsWith(ownName(organizationId, ""))) continue;
    if (existing.has(key.label))
      throw new CommandError(
        `${printable(organizationId)} has two keys with the label ${printable(key.label)}: revoke one`,
      );
    existing.set(key.label, key);
  }
  const wanted = desired.map((creation): Change => {
    const { label } = creation;
    const before = existing.get(label);
    const change = { kind: "key", organizationId, name: label } as const;
    if (before === undefined)
      return {
        ...change,
        ...written(undefined, {}),
        make: (acting, keep) => createKey(keys, { ...creation, ...acting }, keep),
      };
    if (before.userId !== creation.userId)
      throw new CommandError(
        `key ${printable(label)} belongs to user ${printable(before.userId)}, which can't change: give the new key another name`,
      );
    const { userId: _user, label: _label, organizationId: _organization, ...terms } = creation;
    return {
      ...change,
      ...written(termsIn(before, terms), termsIn(terms, terms)),
      make: async (acting) =>
        void (await keys.update({
          ...{ organizationId, id: before.id, ...terms },
          ...expecting(before),
          ...acting,
        })),
    };
  });
  const labels = desired.map(({ label }) => ({ id: label }));
  return [
    ...wanted,
    ...removals(existing, labels, { kind: "key", organizationId }, (label) => async (acting) => {
      const before = existing.get(label);
      const id = before?.id ?? "";
      await keys.revoke({ organizationId, id, ...expecting(before), ...acting });
    }),
  ];
}

/** A change that the plan doesn't show must not be lost: each change expects the record that the plan was made from. */
function expecting(before: object | undefined): IfMatch {
  return before === undefined ? {} : { ifMatch: etagOf(before) };
}

async function createKey(
  keys: Administration["keys"],
  creation: CreateKeyOptions,
  keep: KeepSecret,
): Promise<void> {
  const { key, secret } = await keys.create(creation);
  await keep(key, secret);
}

/** Whether `apply` made a limit: by its name, and because it counts only this organization. */
function isOwn(
  organizationId: string,
  { id, origin, scope }: BudgetRecord | RateLimitRecord,
): boolean {
  const counted = [scope.organization ?? []].flat();
  return (
    origin === "created" &&
    id.startsWith(ownName(organizationId, "")) &&
    counted.length === 1 &&
    counted[0] === organizationId
  );
}

type Shown = Readonly<Record<string, unknown>>;

function shownBudget({ limit, unit, mode, warnAt, scope }: ReturnType<typeof toBudget>): Shown {
  return { limit: amount(limit, unit), mode, warnAt, scope: canonical(scope) };
}

function shownRateLimit({ limit, unit, per, burst, scope }: ReturnType<typeof toRateLimit>): Shown {
  return { limit: amount(limit, unit), per, burst, scope: canonical(scope) };
}

/** The terms of a key that the file gives. The gateway decides the others. */
function termsIn(key: object, given: object): Shown {
  const entries = Object.keys(given).map((member) => [member, Reflect.get(key, member)] as const);
  return Object.fromEntries(
    entries.map(([member, value]) => [
      member,
      member === "expiresAt" && typeof value === "string"
        ? new Date(value).toISOString()
        : canonical(value),
    ]),
  );
}

/** Sorts the members of objects. A single value of a scope is a list of one. */
function canonical(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([member, one]) => [member, Array.isArray(one) && one.length === 1 ? one[0] : one]),
  );
}

function written(before: Shown | undefined, after: Shown): Pick<Change, "action" | "differences"> {
  if (before === undefined) return { action: "create", differences: [] };
  const differences = Object.entries(after).flatMap(([member, value]) => {
    const [from, to] = [printable(before[member]), printable(value)];
    return from === to ? [] : [`${member} ${from} → ${to}`];
  });
  return { action: differences.length === 0 ? "unchanged" : "update", differences };
}

function removals(
  existing: ReadonlyMap<string, unknown>,
  desired: readonly { readonly id: string }[],
  change: Pick<Change, "kind" | "organizationId">,
  remove: (name: string) => Change["make"],
): readonly Change[] {
  const kept = new Set(desired.map(({ id }) => id));
  return [...existing.keys()]
    .filter((name) => !kept.has(name))
    .map((name) => ({ ...change, action: "remove", name, differences: [], make: remove(name) }));
}
