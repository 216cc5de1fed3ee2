import type { LapsedStep, LeaseRenewal } from "@tollgate/core/store";
import { leasing, readRow, stepFromRow } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import type { Transaction } from "../database/transaction.ts";

export async function renewLease(transaction: Transaction, lease: LeaseRenewal): Promise<void> {
  const { processId, renewal, until, steps } = lease;
  const renewed = await transaction.run(leasing.renew, {
    process_id: processId,
    renewal,
    lapses_at: until,
  });
  if (renewed === 0) return;
  for (const { stepId, outputTokens } of steps)
    await transaction.run(leasing.progress, {
      process_id: processId,
      step_id: stepId,
      renewal,
      output_tokens: outputTokens,
    });
}

export async function lapsedSteps(
  connection: Connection,
  query: { readonly at: number; readonly limit: number },
): Promise<readonly LapsedStep[]> {
  const rows = await connection.all(leasing.lapsed, { at: query.at, limit: query.limit });
  return rows.map((row) => {
    const read = readRow(row);
    return {
      step: stepFromRow(row),
      salt: read.bytesOrNull("salt") ?? new Uint8Array(),
      outputTokens: read.integerOrNull("output_tokens"),
    };
  });
}
