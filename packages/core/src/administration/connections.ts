import { type CredentialPlace, UnsealError } from "../connections/credential-sealer.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import type { GatewayConnection, SealedConnection } from "../domain/gateway-connection.ts";
import { GatewayError, invalidArgument } from "../errors/gateway-error.ts";
import { changeLeaf } from "../evidence/leaves.ts";
import { filters, read } from "../input/read.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { reportChange } from "./changes.ts";
import { type IfMatch, requireMatch } from "./etag.ts";
import type { WithActor } from "./keys.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { method } from "./method.ts";
import {
  acting,
  connectionReference,
  connectionRemoval,
  connectionSetting,
  organizationFilter,
} from "./schemas.ts";
import { type OrganizationScope, tenantOf, toIso } from "./tenant.ts";

/** A customer-owned connection without its credential. Times are ISO 8601. */
export interface ConnectionRecord extends Omit<GatewayConnection, "createdAt" | "updatedAt"> {
  readonly createdAt: string;
  /** When its credential was last set. Resealing doesn't change it. */
  readonly updatedAt: string;
}

/** An organization's connection to a gateway. There is at most one. */
export interface ConnectionReference {
  readonly organizationId: string;
  readonly gateway: string;
}

/** An organization's own Gateway API key for a customer-owned gateway. */
export interface SetConnectionOptions extends ConnectionReference, IfMatch, WithActor {
  /** 1 to 8,192 printable ASCII characters, without a space at either end. Stored sealed, never returned. */
  readonly apiKey: string;
}

/** The result of resealing. */
export interface ResealResult {
  /** Credentials whose data key is now wrapped by the current key-encryption key. */
  readonly resealed: number;
  /** Credentials whose data key couldn't be unwrapped or wrapped again. They are unchanged. */
  readonly failed: number;
}

/** Customer-owned connections: the Gateway API keys that organizations bring themselves. */
export interface Connections {
  /**
   * Seals an organization's credential and replaces the one it had. Applies to the next request in this process, and within
   * 5 seconds in every other process; at once if there was none.
   * @throws GatewayError `invalid_argument`, `connection_unavailable` if its data key can't be wrapped, or
   * `precondition_failed`
   */
  set(setting: SetConnectionOptions): Promise<ConnectionRecord>;
  /** @throws GatewayError `connection_not_found` */
  get(reference: ConnectionReference): Promise<ConnectionRecord>;
  /** By organization and gateway. */
  list(filter: OrganizationScope, paging?: Paging): List<ConnectionRecord>;
  /**
   * Deletes the credential. Within 5 seconds, every process rejects new requests that need it; running ones finish.
   * @throws GatewayError `connection_not_found`, `precondition_failed`
   */
  remove(reference: ConnectionReference & IfMatch & WithActor): Promise<void>;
  /**
   * Wraps every data key with the current key-encryption key, unless it already is. Safe in several processes at once and
   * while requests run. Failed ones can be retried. When nothing failed, you can delete the old key.
   * @throws GatewayError `invalid_configuration` without `secrets`
   */
  reseal(acting?: WithActor): Promise<ResealResult>;
}

export function createConnections(
  context: GatewayContext,
  ready: () => Promise<void>,
): Connections {
  const { store, credentials } = context;

  async function find({ organizationId, gateway }: ConnectionReference): Promise<SealedConnection> {
    await ready();
    const connection = await store.connections.get(organizationId, gateway);
    if (!connection) throw notFound();
    return connection;
  }

  return {
    set: method(connectionSetting, async (setting) => {
      await ready();
      return set(context, setting);
    }),
    get: method(connectionReference, async (reference) => toRecord(await find(reference))),
    list: (filter, paging) =>
      listOf(
        async (storePaging) => {
          const query = { organizationId: tenantOf(read(organizationFilter, filter, filters)) };
          await ready();
          return store.connections.list(query, storePaging);
        },
        toRecord,
        paging,
      ),
    remove: method(connectionRemoval, async ({ actor, ifMatch, ...reference }) => {
      const connection = await find(reference);
      const { organizationId, gateway, id } = connection;
      const leaf = connectionLeaf(context, "connection.removed", { ...connection, actor });
      const check = matching(ifMatch);
      if (!(await store.connections.remove({ organizationId, gateway, id, leaf, check })))
        throw notFound();
      reportChange(context, leaf);
      credentials.forget(connection);
    }),
    reseal: method(acting, async ({ actor }) => {
      await ready();
      return resealAll(context, actor);
    }),
  };
}

/** Compares a connection before a change with the tag that the change expects. */
function matching(ifMatch: string | undefined) {
  return (before: GatewayConnection | null): void =>
    requireMatch({ ifMatch }, before && toRecord(before));
}

function toRecord(connection: GatewayConnection): ConnectionRecord {
  const { id, organizationId, gateway, createdAt, updatedAt, keyId } = connection;
  return {
    id,
    organizationId,
    gateway,
    createdAt: toIso(createdAt),
    updatedAt: toIso(updatedAt),
    keyId,
  };
}

async function set(
  context: GatewayContext,
  { organizationId, gateway, apiKey, ifMatch, actor }: SetConnectionOptions,
): Promise<ConnectionRecord> {
  const owner = {
    organizationId,
    gateway: requireCustomerOwned(context, gateway),
  };
  const existing = await context.store.connections.get(owner.organizationId, owner.gateway);
  // Later than before even within a millisecond: the record's tag must change with the credential, which it doesn't show.
  const updatedAt = Math.max(context.clock.now(), (existing?.updatedAt ?? 0) + 1);
  const place = { ...owner, id: existing?.id ?? context.ids.uuid() };
  const connection: SealedConnection = {
    ...place,
    createdAt: existing?.createdAt ?? updatedAt,
    updatedAt,
    ...(await context.sealer.seal(place, apiKey).catch(cannotSeal)),
  };
  const leaf = connectionLeaf(context, "connection.set", { ...connection, actor });
  await context.store.connections.set({ connection, leaf, check: matching(ifMatch) });
  reportChange(context, leaf);
  context.credentials.forget(owner);
  return toRecord(connection);
}

/** The message doesn't repeat the given name: if arguments were mixed up, it could be a credential. */
function requireCustomerOwned({ providers }: GatewayContext, gateway: string): string {
  const owned = [...providers].flatMap(([name, { connection }]) =>
    connection === "customer" ? name : [],
  );
  if (owned.includes(gateway)) return gateway;
  const message =
    owned.length === 0
      ? "`gateway` must be a customer-owned gateway, but the configuration has none."
      : `\`gateway\` must be a customer-owned gateway: ${owned.join(", ")}.`;
  throw invalidArgument("gateway", message);
}

function cannotSeal(thrown: unknown): never {
  if (!(thrown instanceof UnsealError)) throw thrown;
  throw new GatewayError(
    "connection_unavailable",
    "`apiKey` couldn't be sealed: wrapping its data key failed. Try again later.",
  );
}

function notFound(): GatewayError {
  return new GatewayError(
    "connection_not_found",
    "Unknown connection: this organization has none to this gateway.",
  );
}

/** Credentials to reseal at a time. */
const pageSize = 20;

/** Reseals page by page. Changes that another process makes meanwhile are kept. */
async function resealAll(
  context: GatewayContext,
  actor: string | undefined,
): Promise<ResealResult> {
  const { store, sealer } = context;
  if (sealer.current === "")
    throw new GatewayError("invalid_configuration", "`secrets` is required to reseal credentials.");
  const query = { organizationId: null, notWrappedBy: sealer.current };
  let [resealed, failed] = [0, 0];
  let cursor: string | null = null;
  do {
    const page = await store.connections.list(query, { cursor, limit: pageSize });
    const outcomes = await Promise.all(
      page.data.map((connection) => reseal(context, connection, actor)),
    );
    resealed += outcomes.filter((outcome) => outcome === "resealed").length;
    failed += outcomes.filter((outcome) => outcome === "failed").length;
    cursor = page.nextCursor;
    await yieldToEventLoop();
  } while (cursor !== null);
  return { resealed, failed };
}

/** `changed`: someone else replaced, removed or resealed it since it was read. */
async function reseal(
  context: GatewayContext,
  connection: SealedConnection,
  actor: string | undefined,
): Promise<"resealed" | "changed" | "failed"> {
  const to = await context.sealer.rewrap(connection).catch((thrown: unknown) => {
    if (thrown instanceof UnsealError) return null;
    throw thrown;
  });
  if (to === null) return "failed";
  const { organizationId, gateway, wrappedKey: from } = connection;
  const leaf = connectionLeaf(context, "connection.resealed", { ...connection, ...to, actor });
  if (!(await context.store.connections.rewrap({ organizationId, gateway, from, to, leaf })))
    return "changed";
  reportChange(context, leaf);
  return "resealed";
}

/** A leaf names the connection and the key that wraps its data key. It holds nothing that is sealed. */
function connectionLeaf(
  context: GatewayContext,
  kind: LeafKind,
  {
    organizationId,
    gateway,
    id,
    keyId,
    actor,
  }: CredentialPlace & { readonly keyId: string; readonly actor: string | undefined },
): EvidenceLeaf {
  const place = { kind, organizationId, actor };
  return changeLeaf(context, place, { connection: id, gateway, wrappedBy: keyId });
}
