import {
  type ConnectionQuery,
  type ConnectionRepository,
  decodeCursor,
  encodeCursor,
  type GatewayConnection,
  type SealedConnection,
  type StorePage,
  type StorePaging,
} from "@tollgate/core/store";
import type { State } from "./state.ts";

export function createConnectionRepository(state: State): ConnectionRepository {
  const { connections } = state;
  return {
    async set({ connection, leaf }) {
      const held = connections.get(keyOf(connection));
      if (held && sameBytes(held.credential, connection.credential)) return;
      connections.set(keyOf(connection), copyOf(connection));
      state.leaves.insert(leaf);
    },
    async get(organizationId, gateway) {
      const held = connections.get(keyOf({ organizationId, gateway }));
      return held ? copyOf(held) : null;
    },
    list: async (query, paging) => page(connections, query, paging),
    async remove({ id, leaf, ...place }) {
      if (connections.get(keyOf(place))?.id !== id) return false;
      connections.delete(keyOf(place));
      state.leaves.insert(leaf);
      return true;
    },
    async rewrap({ from, to, leaf, ...place }) {
      const held = connections.get(keyOf(place));
      if (!held) return false;
      if (!sameBytes(held.wrappedKey, from)) return sameBytes(held.wrappedKey, to.wrappedKey);
      connections.set(keyOf(place), copyOf({ ...held, ...to }));
      state.leaves.insert(leaf);
      return true;
    },
  };
}

const listName = "connections";

/** Where a connection stands among all: by organization, then gateway. No gateway's name has a slash in it. */
function keyOf({ organizationId, gateway }: Pick<GatewayConnection, "organizationId" | "gateway">) {
  return `${organizationId}/${gateway}`;
}

function page(
  connections: ReadonlyMap<string, SealedConnection>,
  { organizationId, notWrappedBy }: ConnectionQuery,
  { cursor, limit }: StorePaging,
): StorePage<SealedConnection> {
  const after = cursor === null ? null : decodeCursor(listName, cursor).tie;
  const rows = [...connections]
    .filter(([, row]) => organizationId === null || row.organizationId === organizationId)
    .filter(([, row]) => row.keyId !== notWrappedBy)
    .filter(([place]) => after === null || compareKeys(place, after) > 0)
    .sort(([a], [b]) => compareKeys(a, b));
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    data: shown.map(([, row]) => copyOf(row)),
    nextCursor:
      last && rows.length > limit ? encodeCursor(listName, { order: 0, tie: last[0] }) : null,
  };
}

function compareKeys(a: string, b: string): number {
  const [[organization, gateway], [otherOrganization, otherGateway]] = [splitKey(a), splitKey(b)];
  return organization.compare(otherOrganization) || gateway.compare(otherGateway);
}

function splitKey(key: string): readonly [Buffer, Buffer] {
  const end = key.lastIndexOf("/");
  return [Buffer.from(key.slice(0, Math.max(end, 0))), Buffer.from(key.slice(end + 1))];
}

function copyOf(connection: SealedConnection): SealedConnection {
  const { credential, wrappedKey } = connection;
  return {
    ...connection,
    credential: Uint8Array.from(credential),
    wrappedKey: Uint8Array.from(wrappedKey),
  };
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
