import type { Owner, ResponseRepository } from "@tollgate/core/store";
import { leafToRow, opening, readRow, responding, responseFromRow } from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import type { Transaction } from "../database/transaction.ts";
import { removeResponses } from "../verbs/remove-responses.ts";

export function createResponseRepository(database: Database): ResponseRepository {
  return {
    get: (owner, id, at) =>
      database.read((connection) => {
        const row = connection.get(responding.get, liveParameters(owner, id, at));
        return row === undefined ? null : responseFromRow(row);
      }),
    history: (owner, id, at) =>
      database.read((connection) => {
        const rows = connection.all(responding.history, liveParameters(owner, id, at));
        const last = rows.at(-1);
        return last === undefined
          ? null
          : { response: responseFromRow(last), messages: rows.flatMap(messagesOf) };
      }),
    delete: (deletion) => database.erase((transaction) => deleteOne(transaction, deletion)),
    sweep: (query) => database.erase((transaction) => sweep(transaction, query)),
  };
}

function liveParameters({ organizationId, userId, keyId }: Owner, id: string, at: number) {
  return { organization_id: organizationId, user_id: userId, key_id: keyId, id, at };
}

/** What a response adds to its history, after what it holds of responses that are gone. */
function messagesOf(row: unknown): readonly Uint8Array[] {
  const read = readRow(row);
  return [read.bytes("inherited"), read.bytes("messages")];
}

function deleteOne(
  transaction: Transaction,
  { owner, id, at, leaf }: Parameters<ResponseRepository["delete"]>[0],
): boolean {
  const row = transaction.get(responding.removable, liveParameters(owner, id, at));
  if (row === undefined) return false;
  removeResponses(transaction, [{ organizationId: owner.organizationId, id }]);
  transaction.run(opening.insertLeaf, leafToRow(leaf, transaction.next()));
  return true;
}

function sweep(
  transaction: Transaction,
  { at, limit }: Parameters<ResponseRepository["sweep"]>[0],
): number {
  const expired = transaction.all(responding.expired, { at, limit }).map((row) => {
    const read = readRow(row);
    return { organizationId: read.text("organization_id"), id: read.text("id") };
  });
  removeResponses(transaction, expired);
  return expired.length;
}
