import type { StepSweep, Swept } from "@tollgate/core/store";
import { leafToRow, oldStepsOf, opening, readRow } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";

const oldSteps = oldStepsOf("steps");

/** Removes the oldest settled Steps, organization by organization. */
export function sweepSteps(transaction: Transaction, { at, keep, limit, leaf }: StepSweep): Swept {
  const before = at - keep;
  let removed = 0;
  for (const row of transaction.all(oldSteps.organizations, { before, limit })) {
    const organizationId = readRow(row).text("id");
    const count = transaction.run(oldSteps.remove, {
      organization_id: organizationId,
      before,
      limit: limit - removed,
    });
    transaction.run(
      opening.insertLeaf,
      leafToRow(leaf({ organizationId, count }), transaction.next()),
    );
    removed += count;
    if (removed === limit) break;
  }
  return { removed, more: removed === limit };
}
