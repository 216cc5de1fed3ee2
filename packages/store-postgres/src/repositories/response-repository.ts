import type { Owner, ResponseRepository } from "@tollgate/core/store";
import { leafToRow, opening, readRow, responding, responseFromRow } from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import type { Transaction } from "../database/transaction.ts";
import { locking } from "../statements/locking.ts";
import { type ResponseName, removeResponses } from "../verbs/remove-responses.ts";

export function createResponseRepository(database: Database): ResponseRepository {
  return {
    get: (owner, id, at) =>
      database.read(async (connection) => {
        const row = await connection.get(responding.get, liveParameters(owner, id, at));
        return row === undefined ? null : responseFromRow(row);
      }),
    history: (owner, id, at) =>
      database.read(async (connection) => {
        const rows = await connection.all(responding.history, liveParameters(owner, id, at));
        const last = rows.at(-1);
        return last === undefined
          ? null
          : { response: responseFromRow(last), messages: rows.flatMap(messagesOf) };
      }),
    delete: (deletion) =>
      database.write((transaction) => deleteOne(transaction, deletion), { evenIfDone: false }),
    sweep: (query) =>
      database.write((transaction) => sweep(transaction, query), { evenIfDone: true }),
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

async function deleteOne(
  transaction: Transaction,
  { owner, id, at, leaf }: Parameters<ResponseRepository["delete"]>[0],
): Promise<boolean> {
  const { organizationId } = owner;
  await takeTurn(transaction, organizationId);
  const row = await transaction.get(locking.removable, liveParameters(owner, id, at));
  if (row === undefined) return false;
  await removeResponses(transaction, [{ organizationId, id }]);
  await transaction.run(opening.insertLeaf, leafToRow(leaf, await transaction.next()));
  return true;
}

async function sweep(
  transaction: Transaction,
  query: Parameters<ResponseRepository["sweep"]>[0],
): Promise<number> {
  const organizations = new Set((await expired(transaction, query)).map(organizationOf));
  for (const organizationId of [...organizations].sort())
    await takeTurn(transaction, organizationId);
  // What another sweeper removed meanwhile is not counted twice, and what is another organization's waits.
  const removed = (await expired(transaction, query)).filter((name) =>
    organizations.has(name.organizationId),
  );
  await removeResponses(transaction, removed);
  return removed.length;
}

/** Removals within one organization take turns: each may change what the others move. */
async function takeTurn(transaction: Transaction, organizationId: string): Promise<void> {
  await transaction.get(locking.removals, { organization_id: organizationId });
}

async function expired(
  transaction: Transaction,
  { at, limit }: Parameters<ResponseRepository["sweep"]>[0],
): Promise<readonly ResponseName[]> {
  const rows = await transaction.all(responding.expired, { at, limit });
  return rows.map(readRow).map((row) => ({
    organizationId: row.text("organization_id"),
    id: row.text("id"),
  }));
}

function organizationOf({ organizationId }: ResponseName): string {
  return organizationId;
}
