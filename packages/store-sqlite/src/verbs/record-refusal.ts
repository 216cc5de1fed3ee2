import type { Refusal } from "@tollgate/core/store";
import { decisionToRow, leafToRow, opening } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";

/** A decision that is there already was recorded by the call before, leaf and all. */
export function recordRefusal(transaction: Transaction, { owner, decision, leaf }: Refusal): void {
  const row = decisionToRow(owner, decision, transaction.next());
  if (transaction.run(opening.insertDecision, row) === 0) return;
  transaction.run(opening.insertLeaf, leafToRow(leaf, transaction.next()));
}
