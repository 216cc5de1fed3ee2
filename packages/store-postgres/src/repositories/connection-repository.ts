import type { ConnectionRepository, EvidenceLeaf } from "@tollgate/core/store";
import {
  connecting,
  connectionFromRow,
  connectionPage,
  connectionToRow,
  leafToRow,
  opening,
  selectConnections,
} from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import type { Transaction } from "../database/transaction.ts";

export function createConnectionRepository(database: Database): ConnectionRepository {
  return {
    set: ({ connection, leaf }) =>
      database.write(async (transaction) => {
        const row = connectionToRow(connection);
        if ((await transaction.run(connecting.set, row)) > 0) await insertLeaf(transaction, leaf);
      }, anyway),
    get: (organizationId, gateway) =>
      database.read(async (connection) => {
        const place = { organization_id: organizationId, gateway };
        const row = await connection.get(connecting.find, place);
        return row === undefined ? null : connectionFromRow(row);
      }),
    async list(query, paging) {
      const { text, parameters } = selectConnections(query, paging);
      const rows = await database.read((connection) => connection.query(text, parameters));
      return connectionPage(rows, paging);
    },
    remove: ({ organizationId, gateway, id, leaf }) =>
      database.write(async (transaction) => {
        const place = { organization_id: organizationId, gateway, id };
        if ((await transaction.run(connecting.remove, place)) === 0) return false;
        await insertLeaf(transaction, leaf);
        return true;
      }, once),
    rewrap: (change) => database.write((transaction) => rewrap(transaction, change), anyway),
  };
}

const anyway = { evenIfDone: true };
/** What it returns says whether there was a row, and of its own removal it would say the opposite. */
const once = { evenIfDone: false };

async function rewrap(
  transaction: Transaction,
  { organizationId, gateway, from, to, leaf }: Parameters<ConnectionRepository["rewrap"]>[0],
): Promise<boolean> {
  const place = { organization_id: organizationId, gateway, wrapped_key: to.wrappedKey };
  const change = { ...place, key_id: to.keyId, replaced_key: from };
  if ((await transaction.run(connecting.rewrap, change)) === 0)
    return (await transaction.get(connecting.isWrapped, place)) !== undefined;
  await insertLeaf(transaction, leaf);
  return true;
}

async function insertLeaf(transaction: Transaction, leaf: EvidenceLeaf): Promise<void> {
  await transaction.run(opening.insertLeaf, leafToRow(leaf, await transaction.next()));
}
