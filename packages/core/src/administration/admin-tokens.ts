import type { AdminToken } from "../domain/admin-token.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import { GatewayError, invalidArgument } from "../errors/gateway-error.ts";
import { changeLeaf } from "../evidence/leaves.ts";
import { requireClass } from "../identity/key-arguments.ts";
import { createSecret, displayPrefix, isSecretForm, secretDigest } from "../identity/secret.ts";
import { sha256Hex } from "../kernel/digest.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { reportChange } from "./changes.ts";
import { organizationOf } from "./defined-limits.ts";
import {
  asReplayed,
  createsSecret,
  type Idempotent,
  idOfCreation,
  type NotIdempotent,
  requireSame,
} from "./idempotency.ts";
import type { WithActor } from "./keys.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { method, withStoreErrors } from "./method.ts";
import { adminTokenCreation, adminTokenReference, adminTokenRevocation } from "./schemas.ts";
import { fromIso, toIso } from "./tenant.ts";

/** A token for the admin API, without its secret. Times are ISO 8601. */
export interface AdminTokenRecord
  extends Omit<AdminToken, "createdAt" | "expiresAt" | "revokedAt" | "lastUsedAt"> {
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly revokedAt: string | null;
  /** Up to 60 seconds late. */
  readonly lastUsedAt: string | null;
}

/** A new token for the admin API. */
export interface CreateAdminTokenOptions extends WithActor {
  /** Who holds it: 1 to 200 characters. Recorded with the token's id as the actor of its changes. */
  readonly label: string;
  readonly role: AdminToken["role"];
  /** 1 to 1,000 organizations, or `all` for every one, now and later. */
  readonly organizations: readonly string[] | "all";
  /** The right to read transcripts, up to a data class. Default: none, whatever the role. */
  readonly transcripts?: { readonly upTo: string };
  /** ISO 8601, at most 365 days from now. Default: 90 days. */
  readonly expiresAt?: string;
  /** The rights of its creator, who can't let it read more than they may. Default: the host, which may read everything. */
  readonly within?: { readonly transcripts?: { readonly upTo: string } };
}

/** A token with its secret. The secret is shown only here: Tollgate keeps a digest of it. */
export interface AdminTokenWithSecret {
  readonly token: AdminTokenRecord;
  readonly secret: string;
}

/** A token that was created with an idempotency key. `secret` is null for a repeat, because Tollgate doesn't store it. */
export interface CreatedAdminToken {
  readonly token: AdminTokenRecord;
  readonly secret: string | null;
}

/**
 * Tokens for the admin API, for servers without their own users. Every change is recorded with its actor, in the transaction
 * that makes it.
 */
export interface AdminTokens {
  /** Its secret is returned once. @throws GatewayError `invalid_argument`, `admin_forbidden` for more than `within` has */
  create(creation: CreateAdminTokenOptions & NotIdempotent): Promise<AdminTokenWithSecret>;
  /**
   * The same, once per idempotency key. A repeat returns the token as it is now, without its secret.
   * @throws GatewayError `idempotency_mismatch`
   */
  create(creation: CreateAdminTokenOptions & Idempotent): Promise<CreatedAdminToken>;
  /** @throws GatewayError `admin_token_not_found` */
  get(reference: { readonly id: string }): Promise<AdminTokenRecord>;
  /** Newest first, including revoked and expired ones. */
  list(paging?: Paging): List<AdminTokenRecord>;
  /** Applies to the next request in every process. @throws GatewayError `admin_token_not_found` */
  revoke(reference: { readonly id: string } & WithActor): Promise<AdminTokenRecord>;
}

type TokenCreation = CreateAdminTokenOptions & Idempotent;

const day = 86_400_000;
const defaultLife = 90 * day;
const maxLife = 365 * day;
/** A use this soon after the last recorded one isn't recorded. Milliseconds. */
const usePrecision = 60_000;

export function createAdminTokens(context: GatewayContext, ready: () => Promise<void>) {
  const { store, clock } = context;

  async function find(id: string): Promise<AdminToken> {
    await ready();
    const token = await store.adminTokens.get(id);
    if (token !== null) return token;
    throw new GatewayError("admin_token_not_found", "Unknown token for the admin API.");
  }

  const adminTokens: AdminTokens = {
    create: createsSecret<CreateAdminTokenOptions, CreatedAdminToken>(
      method<TokenCreation, CreatedAdminToken>(adminTokenCreation, async (creation) => {
        await ready();
        const secret = createSecret(context.ids, "tga_");
        const token = newToken(context, creation, displayPrefix(secret));
        const leaf = tokenLeaf(context, "admin_token.created", token, creation.actor);
        const digest = secretDigest(secret);
        await store.adminTokens.insert({ token, digest, leaf });
        const isRepeat =
          creation.idempotencyKey !== undefined &&
          (await store.adminTokens.findByDigest(digest)) === null;
        if (isRepeat) return repeated(creation, await find(token.id), token);
        reportChange(context, leaf);
        return { token: toRecord(token), secret };
      }),
    ),
    get: method(adminTokenReference, async ({ id }) => toRecord(await find(id))),
    list: (paging) =>
      listOf(
        async (storePaging) => {
          await ready();
          return store.adminTokens.list(storePaging);
        },
        toRecord,
        paging,
      ),
    revoke: method(adminTokenRevocation, async ({ id, actor }) => {
      const leaf = tokenLeaf(context, "admin_token.revoked", await find(id), actor);
      if (await store.adminTokens.revoke({ id, at: clock.now(), leaf }))
        reportChange(context, leaf);
      return toRecord(await find(id));
    }),
  };

  /** Returns the token with a secret, if it may be used now, and notes its use. */
  async function findAdminToken(secret: string): Promise<AdminTokenRecord | null> {
    if (!isSecretForm(secret, "tga_")) return null;
    await ready();
    const now = clock.now();
    const token = await withStoreErrors(store.adminTokens.findByDigest(secretDigest(secret)));
    if (token === null || token.expiresAt <= now || token.revokedAt !== null) return null;
    if (token.lastUsedAt === null || token.lastUsedAt + usePrecision <= now)
      await withStoreErrors(store.adminTokens.touch({ id: token.id, at: now }));
    return toRecord(token);
  }

  return { adminTokens, findAdminToken };
}

/** The answer to a repeated creation: the existing token. A default expiry counts from the first creation. */
function repeated(
  { expiresAt: end }: CreateAdminTokenOptions,
  existing: AdminToken,
  asked: AdminToken,
): CreatedAdminToken {
  const { prefix, createdAt, revokedAt, lastUsedAt } = existing;
  const expiresAt = end === undefined ? createdAt + defaultLife : asked.expiresAt;
  requireSame(existing, { ...asked, prefix, createdAt, expiresAt, revokedAt, lastUsedAt });
  return asReplayed({ token: toRecord(existing), secret: null });
}

function newToken(
  { ids, clock, dataClasses }: GatewayContext,
  creation: TokenCreation,
  prefix: string,
): AdminToken {
  const { label, role, organizations, transcripts, expiresAt: end, within } = creation;
  const createdAt = clock.now();
  const expiresAt = end === undefined ? createdAt + defaultLife : fromIso(end);
  if (expiresAt <= createdAt || expiresAt > createdAt + maxLife)
    throw invalidArgument("expiresAt", "`expiresAt` must be in the future and within 365 days.");
  if (transcripts !== undefined) {
    requireClass(dataClasses, "transcripts.upTo", transcripts.upTo);
    requireWithin(dataClasses, transcripts.upTo, within);
  }
  return {
    id: idOfCreation(ids, creation, "adminTokens.create"),
    label,
    prefix,
    role,
    organizations: organizations === "all" ? "all" : [...new Set(organizations)],
    transcripts: transcripts ?? null,
    createdAt,
    expiresAt,
    revokedAt: null,
    lastUsedAt: null,
  };
}

/** Nobody can grant a right that they don't have. */
function requireWithin(
  dataClasses: readonly string[],
  asked: string,
  within: CreateAdminTokenOptions["within"],
): void {
  if (within === undefined) return;
  const { transcripts } = within;
  if (transcripts && dataClasses.indexOf(asked) <= dataClasses.indexOf(transcripts.upTo)) return;
  throw new GatewayError(
    "admin_forbidden",
    "`transcripts.upTo` exceeds your own right to read transcripts: choose a lower class or leave it out.",
    { param: "transcripts.upTo" },
  );
}

function toRecord(token: AdminToken): AdminTokenRecord {
  return {
    ...token,
    createdAt: toIso(token.createdAt),
    expiresAt: toIso(token.expiresAt),
    revokedAt: toIso(token.revokedAt),
    lastUsedAt: toIso(token.lastUsedAt),
  };
}

/** The leaf of a change to a token. A label is free text, so the leaf holds only its digest. */
function tokenLeaf(
  context: GatewayContext,
  kind: LeafKind,
  { id, label, role, organizations, transcripts, expiresAt }: AdminToken,
  actor: string | undefined,
): EvidenceLeaf {
  const counted = organizations === "all" ? {} : { organization: organizations };
  const place = { kind, organizationId: organizationOf(counted), actor };
  return changeLeaf(context, place, {
    admin_token: {
      expiresAt,
      id,
      organizations: organizations === "all" ? "all" : [...organizations],
      role,
      transcripts: transcripts === null ? null : { upTo: transcripts.upTo },
    },
    labelSha256: sha256Hex(label),
  });
}
