import type { LapsedStep, LeaseClock, LeaseRenewal } from "@tollgate/core/store";
import { leaseStatements, readRow, stepFromRow } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import type { Transaction } from "../database/transaction.ts";
import { databaseTime } from "../statements/database-time.ts";

export async function renewLease(transaction: Transaction, lease: LeaseRenewal): Promise<void> {
  const { processId, renewal, at, until, steps } = lease;
  const now = await timeOf(transaction, lease);
  const renewed = await transaction.run(leaseStatements.renew, {
    process_id: processId,
    renewal,
    lapses_at: now + (until - at),
  });
  if (renewed === 0) return;
  // A process that begins clears away what others before it left.
  if (renewal === 1)
    await transaction.run(leaseStatements.forget, { at: now, process_id: processId });
  for (const { organizationId, stepId, outputTokens } of steps)
    await transaction.run(leaseStatements.progress, {
      process_id: processId,
      organization_id: organizationId,
      step_id: stepId,
      renewal,
      output_tokens: outputTokens,
    });
}

export async function lapsedSteps(
  connection: Connection,
  query: { readonly at: number; readonly clock: LeaseClock; readonly limit: number },
): Promise<readonly LapsedStep[]> {
  const at = await timeOf(connection, query);
  const rows = await connection.all(leaseStatements.lapsed, { at, limit: query.limit });
  return rows.map((row) => {
    const read = readRow(row);
    return {
      step: stepFromRow(row),
      salt: read.bytesOrNull("salt") ?? new Uint8Array(),
      outputTokens: read.integerOrNull("output_tokens"),
    };
  });
}

/** The machines that share the database need not agree on the time. */
async function timeOf(
  connection: Pick<Connection, "get">,
  { at, clock }: { readonly at: number; readonly clock: LeaseClock },
): Promise<number> {
  if (clock === "gateway") return at;
  return readRow(await connection.get(databaseTime, {})).integer("now");
}
