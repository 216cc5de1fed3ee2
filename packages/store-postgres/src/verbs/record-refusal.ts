import type { Refusal } from "@tollgate/core/store";
import { decisionToRow, leafToRow, opening } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";

/** A decision that is there already was recorded by the call before, leaf and all. */
export async function recordRefusal(
  transaction: Transaction,
  { owner, decision, leaf }: Refusal,
): Promise<void> {
  const row = decisionToRow(owner, decision, await transaction.next());
  if ((await transaction.run(opening.insertDecision, row)) === 0) return;
  await transaction.run(opening.insertLeaf, leafToRow(leaf, await transaction.next()));
}
