import type { Owner, ResponseRepository } from "@tollgate/core/store";
import { deleteResponse, sweepResponses } from "@tollgate/store-engine";
import { readRow, responseFromRow, responseStatements } from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";

export function createResponseRepository(database: Database): ResponseRepository {
  return {
    get: (owner, id, at) =>
      database.read((connection) => {
        const row = connection.get(responseStatements.get, liveParameters(owner, id, at));
        return row === undefined ? null : responseFromRow(row);
      }),
    history: (owner, id, at) =>
      database.read((connection) => {
        const rows = connection.all(responseStatements.history, liveParameters(owner, id, at));
        const last = rows.at(-1);
        return last === undefined
          ? null
          : { response: responseFromRow(last), messages: rows.flatMap(messagesOf) };
      }),
    delete: (deletion) =>
      database.erase(({ carryOut }) => carryOut((view) => deleteResponse(view, deletion))),
    sweep: (query) =>
      database.erase(({ carryOut }) => carryOut((view) => sweepResponses(view, query))),
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
