import { type ResponseRepository, yieldToEventLoop } from "@tollgate/core/store";
import { deleteResponse, sweepResponses } from "@tollgate/store-engine";
import { readRow } from "@tollgate/store-sql";
import { sizeStatements } from "./content-bytes.ts";
import type { Database } from "./database.ts";
import type { Transaction } from "./transaction.ts";

/** Deletes and sweeps responses. */
export function createResponseRepository(
  database: Database,
): Pick<ResponseRepository, "delete" | "sweep"> {
  return {
    delete: (deletion) =>
      database.erase(({ carryOut }) => carryOut((view) => deleteResponse(view, deletion))),
    sweep: (query) => sweepInParts(database, query),
  };
}

/** Bytes that a sweep removes in one transaction; a larger row goes alone. SQLite overwrites all of them, and everything waits. */
const maxRemovedBytes = 1_048_576;

interface ResponseSweep {
  readonly at: number;
  readonly limit: number;
}

/** Removes expired responses and claims, in transactions that are short enough for the event loop. */
async function sweepInParts(
  database: Pick<Database, "erase">,
  { at, limit }: ResponseSweep,
): Promise<number> {
  for (let removed = 0; ; ) {
    const part = await database.erase((transaction) => {
      const rest = { at, limit: limit - removed };
      const fitting = { at, limit: countFitting(transaction, rest) };
      return transaction.carryOut((view) => sweepResponses(view, fitting));
    });
    removed += part;
    if (part === 0 || removed >= limit) return removed;
    await yieldToEventLoop();
  }
}

/** How many of the first expired rows fit. Claims are removed only after the responses. */
function countFitting({ all }: Pick<Transaction, "all">, sweep: ResponseSweep): number {
  const responses = all(sizeStatements.expiredResponses, { ...sweep });
  const rows = responses.length > 0 ? responses : all(sizeStatements.expiredClaims, { ...sweep });
  let bytes = 0;
  const over = rows.findIndex((row, at) => {
    bytes += readRow(row).integer("bytes");
    return at > 0 && bytes > maxRemovedBytes;
  });
  return over < 0 ? rows.length : over;
}
