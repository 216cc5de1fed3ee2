import type { StepSweep, Swept } from "@tollgate/core/store";
import { leafToRow, opening, readRow, retaining } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { locking } from "../statements/locking.ts";

/** Removes the oldest settled Steps, organization by organization. */
export async function sweepSteps(
  transaction: Transaction,
  { at, keep, limit, leaf }: StepSweep,
): Promise<Swept> {
  await transaction.get(locking.sweep, {});
  const before = at - keep;
  let removed = 0;
  for (const row of await transaction.all(retaining.organizationsOfOldSteps, { before, limit })) {
    const organizationId = readRow(row).text("id");
    const count = await transaction.run(retaining.removeOldSteps, {
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
