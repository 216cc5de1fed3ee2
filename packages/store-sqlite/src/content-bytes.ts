import { type Change, keptExpiry, type Operation } from "@tollgate/store-engine";
import { claimKeyToRow, readRow } from "@tollgate/store-sql";
import type { SqliteConnection } from "./connection.ts";

const responseBytes = "length(body) + length(input) + length(messages) + length(inherited)";
const claimBytes = "coalesce(length(body), 0)";

/** The sizes of rows that are removed or hidden. SQLite reads the length of a content without the content. */
export const sizeStatements = {
  response: `SELECT ${responseBytes} AS bytes FROM responses
    WHERE organization_id = :organization_id AND id = :id`,
  claim: `SELECT ${claimBytes} AS bytes FROM claims
    WHERE organization_id = :organization_id AND key_id = :key_id AND endpoint = :endpoint
      AND idempotency_key = :idempotency_key`,
  /** The sizes of the rows that a sweep removes next, in its order. */
  expiredResponses: `SELECT ${responseBytes} AS bytes
    FROM responses WHERE expires_at > ${keptExpiry} AND expires_at <= :at
    ORDER BY expires_at, organization_id, id LIMIT :limit`,
  expiredClaims: `SELECT ${claimBytes} AS bytes FROM claims WHERE expires_at <= :at
    ORDER BY expires_at, organization_id, key_id, endpoint, idempotency_key LIMIT :limit`,
} as const;

/** The bytes of content that a change will write or overwrite. Reads the rows as they are before the change. */
export function contentBytesOf(change: Change, reads: Pick<SqliteConnection, "get">): number {
  return change.reduce((sum, operation) => sum + bytesOf(operation, reads), 0);
}

function bytesOf({ write, row }: Operation, { get }: Pick<SqliteConnection, "get">): number {
  switch (write) {
    case "insert part":
      return row.chain.length + (row.content?.length ?? 0);
    case "insert response":
      return row.body.length + row.input.length + row.messages.length + row.inherited.length;
    case "settle claim":
      return row.ending.state === "kept" ? row.ending.answer.body.length : 0;
    case "remove response":
    case "hide response":
      return sizeIn(
        get(sizeStatements.response, { organization_id: row.organizationId, id: row.id }),
      );
    case "forget claim":
    case "remove claim":
      return sizeIn(get(sizeStatements.claim, claimKeyToRow(row)));
    default:
      return 0;
  }
}

function sizeIn(row: unknown): number {
  return row === undefined ? 0 : readRow(row).integer("bytes");
}

/** Bytes that a sweep removes in one transaction; a larger row goes alone. SQLite overwrites them while all else waits. */
const maxRemovedBytes = 1_048_576;

/** The responses and claims that a sweep removes next: those that expired by `at`, at most `limit`. */
export interface ResponseSweep {
  readonly at: number;
  readonly limit: number;
}

/** How many of the first expired rows fit. Claims are removed only after the responses. */
export function countFitting({ all }: Pick<SqliteConnection, "all">, sweep: ResponseSweep): number {
  const responses = all(sizeStatements.expiredResponses, { ...sweep });
  const rows = responses.length > 0 ? responses : all(sizeStatements.expiredClaims, { ...sweep });
  let bytes = 0;
  const over = rows.findIndex((row, at) => {
    bytes += readRow(row).integer("bytes");
    return at > 0 && bytes > maxRemovedBytes;
  });
  return over < 0 ? rows.length : over;
}
