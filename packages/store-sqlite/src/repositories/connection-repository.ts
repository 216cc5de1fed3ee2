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
      database.write((transaction) => {
        const row = connectionToRow(connection);
        if (transaction.run(connecting.set, row) > 0) insertLeaf(transaction, leaf);
      }),
    get: (organizationId, gateway) =>
      database.read((connection) => {
        const place = { organization_id: organizationId, gateway };
        const row = connection.get(connecting.find, place);
        return row === undefined ? null : connectionFromRow(row);
      }),
    async list(query, paging) {
      const { text, parameters } = selectConnections(query, paging);
      const rows = await database.read((connection) => connection.query(text, parameters));
      return connectionPage(rows, paging);
    },
    remove: ({ organizationId, gateway, id, leaf }) =>
      database.write((transaction) => {
        const place = { organization_id: organizationId, gateway, id };
        if (transaction.run(connecting.remove, place) === 0) return false;
        insertLeaf(transaction, leaf);
        return true;
      }),
    rewrap: (change) => database.write((transaction) => rewrap(transaction, change)),
  };
}

function rewrap(
  transaction: Transaction,
  { organizationId, gateway, from, to, leaf }: Parameters<ConnectionRepository["rewrap"]>[0],
): boolean {
  const place = { organization_id: organizationId, gateway, wrapped_key: to.wrappedKey };
  const change = { ...place, key_id: to.keyId, replaced_key: from };
  if (transaction.run(connecting.rewrap, change) === 0)
    return transaction.get(connecting.isWrapped, place) !== undefined;
  insertLeaf(transaction, leaf);
  return true;
}

function insertLeaf(transaction: Transaction, leaf: EvidenceLeaf): void {
  transaction.run(opening.insertLeaf, leafToRow(leaf, transaction.next()));
}
