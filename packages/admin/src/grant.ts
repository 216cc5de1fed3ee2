import {
  type Administration,
  type BudgetScope,
  everyOrganization,
  GatewayError,
  type IfMatch,
  type RateLimitScope,
} from "@tollgate/core";
import { type AdminRole, adminRoles, etagOf, requireMatch } from "@tollgate/core/administration";
import { read, type Schema, text, z } from "@tollgate/core/schemas";

/** Who signed in to the admin API, and what they may do. */
export interface AdminGrant {
  /** Recorded as the actor of every change: 1 to 255 characters. */
  readonly actor: string;
  /** The organizations whose records they see and change; `all` for every one, now and later. */
  readonly organizations: readonly string[] | "all";
  readonly role: AdminRole;
  /** The right to read transcripts, up to a data class. No role includes it. */
  readonly transcripts?: { readonly upTo: string };
}

const opaque = text(
  (id) => id !== "" && id.length <= 255 && id.isWellFormed() && !/\p{Cc}/u.test(id),
  "must be 1 to 255 characters without control characters",
);

/** A grant as a host returns it. */
export const adminGrantSchema: Schema<AdminGrant> = z.strictObject({
  actor: opaque,
  organizations: z.union([z.literal("all"), z.array(opaque).check(z.maxLength(10_000))]),
  role: z.enum(adminRoles),
  transcripts: z.exactOptional(z.strictObject({ upTo: opaque })),
});

/** Checks what a host returned. */
export function readGrant(grant: unknown): AdminGrant {
  return read(adminGrantSchema, grant);
}

/** @throws GatewayError `admin_forbidden` if the role is too low */
export function requireRole({ role }: AdminGrant, required: AdminRole): void {
  if (adminRoles.indexOf(role) >= adminRoles.indexOf(required)) return;
  throw forbidden(`This operation requires the role ${required}.`);
}

/** @throws GatewayError `admin_forbidden` unless the grant is for all organizations */
export function requirePlatform({ organizations }: AdminGrant): void {
  if (organizations === "all") return;
  throw forbidden("This operation concerns every organization and requires a grant for all.");
}

/**
 * The organization of a request: the named one, or the only one of the grant, or every one.
 * @throws GatewayError `organization_not_found`, with the same message for another's and an unknown one;
 * `missing_required_parameter`
 */
export function organizationOf(
  { organizations }: AdminGrant,
  named: string | undefined,
): string | typeof everyOrganization {
  if (organizations === "all") return named ?? everyOrganization;
  const [only, ...others] = organizations;
  const organizationId = named ?? (others.length === 0 ? only : undefined);
  if (organizationId === undefined)
    throw missing("organizationId", "`organizationId` is required: name one organization.");
  if (organizations.includes(organizationId)) return organizationId;
  throw unknownOrganization("organizationId");
}

/** The part of a budget or rate limit that says whose requests it counts. */
export type Scope = Pick<BudgetScope | RateLimitScope, "organization">;

/** Whether a budget or rate limit counts only organizations of the grant. Nobody else sees or changes it. */
export function sees({ organizations }: AdminGrant, { organization = [] }: Scope): boolean {
  if (organizations === "all") return true;
  const counted = [organization].flat();
  return counted.length > 0 && counted.every((id) => organizations.includes(id));
}

/** @throws GatewayError unless a new scope counts only organizations of the grant */
export function requireOwnScope(grant: AdminGrant, scope: Scope = {}): void {
  if (sees(grant, scope)) return;
  if (scope.organization === undefined)
    throw missing("scope.organization", "`scope.organization` is required: name your own.");
  throw unknownOrganization("scope.organization");
}

/** A budget or rate limit, and the tag that its caller expects it to have. */
interface Reference extends IfMatch {
  readonly id: string;
}

/**
 * Checks that a grant covers a budget. Another organization's budget is as unknown as one that doesn't exist. Returns the
 * condition for a change, because the budget may become another organization's in the meantime. It replaces the caller's
 * own condition, which could be the tag of a budget that the caller can't see.
 * @throws GatewayError `budget_not_found`; `precondition_failed` if the caller expects another record
 */
export async function requireBudget(
  { budgets }: Pick<Administration, "budgets">,
  grant: AdminGrant,
  reference: Reference,
): Promise<IfMatch> {
  if (grant.organizations === "all") return {};
  const budget = await budgets.get({ id: reference.id });
  if (sees(grant, budget.scope)) return asSeen(budget, reference);
  throw new GatewayError("budget_not_found", `Unknown budget: ${reference.id}.`);
}

/** As `requireBudget`, for a rate limit. */
export async function requireRateLimit(
  { rateLimits }: Pick<Administration, "rateLimits">,
  grant: AdminGrant,
  reference: Reference,
): Promise<IfMatch> {
  if (grant.organizations === "all") return {};
  const rateLimit = await rateLimits.get({ id: reference.id });
  if (sees(grant, rateLimit.scope)) return asSeen(rateLimit, reference);
  throw new GatewayError("rate_limit_not_found", `Unknown rate limit: ${reference.id}.`);
}

function asSeen(record: object, reference: Reference): IfMatch {
  requireMatch(reference, record);
  return { ifMatch: etagOf(record) };
}

export function forbidden(message: string): GatewayError {
  return new GatewayError("admin_forbidden", message);
}

function unknownOrganization(param: string): GatewayError {
  return new GatewayError("organization_not_found", "Unknown organization.", { param });
}

function missing(param: string, message: string): GatewayError {
  return new GatewayError("missing_required_parameter", message, { param });
}

/**
 * Who reads content, and up to which data class.
 * @throws GatewayError `admin_forbidden` without the right to read transcripts, which no role includes
 */
export function reading({ actor, transcripts }: AdminGrant) {
  if (transcripts !== undefined) return { actor, upTo: transcripts.upTo };
  throw forbidden("Reading transcripts requires a separate right, which no role includes.");
}
