import type { StepSweep, Swept } from "@tollgate/core/store";
import { leafToRow, oldStepsOf, opening, readRow } from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import { restOfSteps } from "../database/schema.ts";
import type { Transaction } from "../database/transaction.ts";
import { dropPartition } from "../partitions/drop-partition.ts";
import { makePartitions } from "../partitions/make-partitions.ts";
import { locking } from "../statements/locking.ts";

/** Removes Steps by whole partitions, and row by row those that are in none. */
export async function sweepSteps(database: Database, sweep: StepSweep): Promise<Swept> {
  if (database.mayRearrange) {
    await makePartitions(database, sweep.keep);
    const dropped = await dropPartition(database, sweep);
    if (dropped !== null) return { removed: dropped, more: true };
  }
  return database.write((transaction) => sweepRest(transaction, sweep), { evenIfDone: true });
}

const oldSteps = oldStepsOf(restOfSteps);

async function sweepRest(
  transaction: Transaction,
  { at, keep, limit, leaf }: StepSweep,
): Promise<Swept> {
  await transaction.get(locking.sweep, {});
  const before = at - keep;
  let removed = 0;
  for (const row of await transaction.all(oldSteps.organizations, { before, limit })) {
    const organizationId = readRow(row).text("id");
    const count = await transaction.run(oldSteps.remove, {
      organization_id: organizationId,
      before,
      limit: limit - removed,
    });
    const record = leaf({ organizationId, count });
    await transaction.run(opening.insertLeaf, leafToRow(record, await transaction.next()));
    removed += count;
    if (removed === limit) break;
  }
  return { removed, more: removed === limit };
}
