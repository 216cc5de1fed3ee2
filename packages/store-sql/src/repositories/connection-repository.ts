import type { ConnectionRepository, SealedConnection } from "@tollgate/core/store";
import { connectionFromRow, connectionToRow } from "../rows/connection-row.ts";
import { anyway, get, once, query, run, type Script, type ScriptDatabase } from "../script.ts";
import {
  connectionPage,
  connectionStatements,
  selectConnections,
} from "../statements/connection.ts";
import { insertLeaf } from "./reading.ts";

type Change<Verb extends "set" | "remove" | "rewrap"> = Parameters<ConnectionRepository[Verb]>[0];

export function createConnectionRepository(database: ScriptDatabase): ConnectionRepository {
  return {
    set: (change) => database.write(() => set(change), anyway),
    get: (organizationId, gateway) => database.read(() => find(organizationId, gateway)),
    async list(asked, paging) {
      const { text, parameters } = selectConnections(asked, paging);
      const rows = await database.read(() => query(text, parameters));
      return connectionPage(rows, paging);
    },
    // It returns whether it removed a row. A second run would return the opposite.
    remove: (change) => database.write(() => remove(change), once),
    rewrap: (change) => database.write(() => rewrap(change), anyway),
  };
}

function* set({ connection, leaf }: Change<"set">): Script<void> {
  if ((yield* run(connectionStatements.set, connectionToRow(connection))) > 0)
    yield* insertLeaf(leaf);
}

function* find(organizationId: string, gateway: string): Script<SealedConnection | null> {
  const row = yield* get(connectionStatements.find, { organization_id: organizationId, gateway });
  return row === undefined ? null : connectionFromRow(row);
}

function* remove({ organizationId, gateway, id, leaf }: Change<"remove">): Script<boolean> {
  const place = { organization_id: organizationId, gateway, id };
  if ((yield* run(connectionStatements.remove, place)) === 0) return false;
  yield* insertLeaf(leaf);
  return true;
}

function* rewrap({ organizationId, gateway, from, to, leaf }: Change<"rewrap">): Script<boolean> {
  const place = { organization_id: organizationId, gateway, wrapped_key: to.wrappedKey };
  const change = { ...place, key_id: to.keyId, replaced_key: from };
  if ((yield* run(connectionStatements.rewrap, change)) === 0)
    return (yield* get(connectionStatements.isWrapped, place)) !== undefined;
  yield* insertLeaf(leaf);
  return true;
}
