import type { LapsedStep, LeaseRenewal } from "@tollgate/core/store";
import { leaseStatements, readRow, stepFromRow } from "@tollgate/store-sql";
import type { SqliteConnection } from "../database/connection.ts";
import type { Transaction } from "../database/transaction.ts";
import { embeddingStatements } from "../driver/carried.ts";

export function renewLease(transaction: Transaction, lease: LeaseRenewal): void {
  const { processId, renewal, at, until, steps } = lease;
  const renewed = transaction.run(leaseStatements.renew, {
    process_id: processId,
    renewal,
    lapses_at: until,
  });
  if (renewed === 0) return;
  // A process that begins clears away what others before it left.
  if (renewal === 1) transaction.run(leaseStatements.forget, { at, process_id: processId });
  for (const { organizationId, stepId, outputTokens } of steps)
    transaction.run(embeddingStatements.progress, {
      process_id: processId,
      organization_id: organizationId,
      step_id: stepId,
      renewal,
      output_tokens: outputTokens,
    });
}

export function lapsedSteps(
  connection: SqliteConnection,
  query: { readonly at: number; readonly limit: number },
): readonly LapsedStep[] {
  return connection.all(leaseStatements.lapsed, { at: query.at, limit: query.limit }).map((row) => {
    const read = readRow(row);
    return {
      step: stepFromRow(row),
      salt: read.bytesOrNull("salt") ?? new Uint8Array(),
      outputTokens: read.integerOrNull("output_tokens"),
    };
  });
}
