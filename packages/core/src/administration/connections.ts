import { UnsealError } from "../connections/credential-sealer.ts";
import type { SealedConnection } from "../domain/gateway-connection.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { filters, read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { checked } from "./arguments.ts";
import { connectionLeaf } from "./connection-leaf.ts";
import {
  type ConnectionRecord,
  type ConnectionReference,
  type Connections,
  type SetConnectionOptions,
  toConnectionRecord,
} from "./connection-records.ts";
import { listOf } from "./list.ts";
import { resealConnections } from "./reseal-connections.ts";
import {
  acting,
  connectionReference,
  connectionRemoval,
  connectionSetting,
  organizationFilter,
} from "./schemas.ts";
import { tenantOf } from "./tenant.ts";

export function createConnections(line: GatewayContext, ready: () => Promise<void>): Connections {
  const { store, credentials } = line;

  async function find({ organizationId, gateway }: ConnectionReference): Promise<SealedConnection> {
    await ready();
    const found = await store.connections.get(organizationId, gateway);
    if (!found) throw notFound();
    return found;
  }

  return {
    set: checked(connectionSetting, async (setting) => {
      await ready();
      return set(line, setting);
    }),
    get: checked(connectionReference, async (reference) =>
      toConnectionRecord(await find(reference)),
    ),
    list: (filter, paging) =>
      listOf(
        async (storePaging) => {
          const query = { organizationId: tenantOf(read(organizationFilter, filter, filters)) };
          await ready();
          return store.connections.list(query, storePaging);
        },
        toConnectionRecord,
        paging,
      ),
    remove: checked(connectionRemoval, async ({ actor, ...reference }) => {
      const connection = await find(reference);
      const { organizationId, gateway, id } = connection;
      const leaf = connectionLeaf(line, "connection.removed", { ...connection, actor });
      if (!(await store.connections.remove({ organizationId, gateway, id, leaf })))
        throw notFound();
      credentials.forget(connection);
    }),
    async reseal(given = {}) {
      const { actor } = read(acting, given);
      await ready();
      return resealConnections(line, actor);
    },
  };
}

async function set(
  line: GatewayContext,
  { organizationId, gateway, apiKey, actor }: SetConnectionOptions,
): Promise<ConnectionRecord> {
  const owner = {
    organizationId,
    gateway: requireCustomerOwned(line, gateway),
  };
  const held = await line.store.connections.get(owner.organizationId, owner.gateway);
  const updatedAt = line.clock.now();
  const place = { ...owner, id: held?.id ?? line.ids.uuid() };
  const connection: SealedConnection = {
    ...place,
    createdAt: held?.createdAt ?? updatedAt,
    updatedAt,
    ...(await line.sealer.seal(place, apiKey).catch(cannotSeal)),
  };
  const leaf = connectionLeaf(line, "connection.set", { ...connection, actor });
  await line.store.connections.set({ connection, leaf });
  line.credentials.forget(owner);
  return toConnectionRecord(connection);
}

/** The name is not repeated: who mixes up the arguments would find a credential in the message. */
function requireCustomerOwned({ providers }: GatewayContext, gateway: string): string {
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

function cannotSeal(thrown: unknown): never {
  if (!(thrown instanceof UnsealError)) throw thrown;
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
