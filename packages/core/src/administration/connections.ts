import { Unsealable } from "../connections/vault.ts";
import type { SealedConnection } from "../domain/connection.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Line } from "../pipeline/line.ts";
import { connectionLeaf } from "./connection-leaf.ts";
import {
  type ConnectionRecord,
  type ConnectionReference,
  type ConnectionSetting,
  type Connections,
  toConnectionRecord,
} from "./connection-records.ts";
import { listOf } from "./list.ts";
import { requireMembers } from "./require-members.ts";
import { resealConnections } from "./reseal-connections.ts";
import { requireId, tenantOf } from "./tenant.ts";

export function createConnections(line: Line, ready: () => Promise<void>): Connections {
  const { store, credentials } = line;

  async function find({ organizationId, gateway }: ConnectionReference): Promise<SealedConnection> {
    await ready();
    const found = await store.connections.get(
      requireId("organizationId", organizationId),
      requireId("gateway", gateway),
    );
    if (!found) throw notFound();
    return found;
  }

  return {
    async set(setting) {
      await ready();
      return set(line, setting);
    },
    get: async (reference) => toConnectionRecord(await find(reference)),
    list: (filter, paging) =>
      listOf(
        async (storePaging) => {
          requireMembers(filter, ["organizationId"]);
          await ready();
          return store.connections.list({ organizationId: tenantOf(filter) }, storePaging);
        },
        toConnectionRecord,
        paging,
      ),
    async remove({ actor, ...reference }) {
      const connection = await find(reference);
      const { organizationId, gateway, id } = connection;
      const leaf = connectionLeaf(line, "connection.removed", { ...connection, actor });
      if (!(await store.connections.remove({ organizationId, gateway, id, leaf })))
        throw notFound();
      credentials.forget(connection);
    },
    async reseal({ actor } = {}) {
      await ready();
      return resealConnections(line, actor);
    },
  };
}

async function set(
  line: Line,
  { organizationId, gateway, apiKey, actor }: ConnectionSetting,
): Promise<ConnectionRecord> {
  const owner = {
    organizationId: requireId("organizationId", organizationId),
    gateway: requireCustomerOwned(line, gateway),
  };
  requireCredential(apiKey);
  const held = await line.store.connections.get(owner.organizationId, owner.gateway);
  const updatedAt = line.clock.now();
  const place = { ...owner, id: held?.id ?? line.ids.uuid() };
  const connection: SealedConnection = {
    ...place,
    createdAt: held?.createdAt ?? updatedAt,
    updatedAt,
    ...(await line.vault.seal(place, apiKey).catch(cannotSeal)),
  };
  const leaf = connectionLeaf(line, "connection.set", { ...connection, actor });
  await line.store.connections.set({ connection, leaf });
  line.credentials.forget(owner);
  return toConnectionRecord(connection);
}

/** The name is not repeated: who mixes up the arguments would find a credential in the message. */
function requireCustomerOwned({ providers }: Line, gateway: string): string {
  const owned = [...providers].flatMap(([name, { connection }]) =>
    connection === "customer" ? name : [],
  );
  if (owned.includes(gateway)) return gateway;
  const which = owned.length === 0 ? "there is none" : owned.join(", ");
  throw new GatewayError(
    "invalid_argument",
    `gateway must be a customer-owned gateway of the configuration: ${which}.`,
    { param: "gateway" },
  );
}

const mostCharacters = 8_192;

function requireCredential(apiKey: unknown): void {
  if (
    typeof apiKey === "string" &&
    apiKey.length <= mostCharacters &&
    /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(apiKey)
  )
    return;
  throw new GatewayError(
    "invalid_argument",
    `apiKey must be 1 to ${mostCharacters} printable ASCII characters without a space at either end.`,
    { param: "apiKey" },
  );
}

function cannotSeal(thrown: unknown): never {
  if (!(thrown instanceof Unsealable)) throw thrown;
  throw new GatewayError(
    "connection_unavailable",
    "The credential cannot be sealed: the key-encryption key does not answer.",
  );
}

function notFound(): GatewayError {
  return new GatewayError(
    "connection_not_found",
    "The organization has no connection to this gateway.",
  );
}
