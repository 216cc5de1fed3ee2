import type { Swept, TranscriptSweep } from "@tollgate/core/store";
import { erasing, leafToRow, opening, readRow } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";

const nothing = new Uint8Array();

/** Erases what was said in the Sessions that were used the longest ago, organization by organization. */
export function sweepTranscripts(transaction: Transaction, sweep: TranscriptSweep): Swept {
  const { at, keep, limit } = sweep;
  const before = at - keep;
  const due = transaction.all(erasing.organizationsOfOldSessions, { before, limit });
  let [looked, removed] = [0, 0];
  for (const row of due.map(readRow)) {
    const place = { organizationId: row.text("id"), mark: row.integer("mark") };
    const one = sweepOrganization(transaction, sweep, { ...place, limit: limit - looked });
    looked += one.looked;
    removed += one.removed;
    if (looked === limit) break;
  }
  return { removed, more: looked === limit };
}

function sweepOrganization(
  transaction: Transaction,
  { at, keep, leaf }: TranscriptSweep,
  place: { readonly organizationId: string; readonly mark: number; readonly limit: number },
): { readonly looked: number; readonly removed: number } {
  const { organizationId, mark, limit } = place;
  const before = at - keep;
  const organization = { organization_id: organizationId };
  const rows = transaction.all(erasing.sessionsInOrder, { ...organization, mark, limit });
  const sessions = rows.map(readRow);
  const inUse = sessions.findIndex((session) => session.integer("updated_at") >= before);
  const old = inUse < 0 ? sessions : sessions.slice(0, inUse);
  const erased = new Set<string>();
  for (const session of old)
    eraseLineage(transaction, { organizationId, id: session.text("id"), before, erased });
  const last = old.at(-1);
  if (last) transaction.run(erasing.mark, { ...organization, updated: last.integer("updated") });
  if (erased.size > 0) {
    const record = leaf({ organizationId, sessionIds: [...erased] });
    transaction.run(opening.insertLeaf, leafToRow(record, transaction.next()));
  }
  return { looked: old.length, removed: erased.size };
}

/** A Session, and those it branched from, which may have waited for it. */
function eraseLineage(
  transaction: Transaction,
  lineage: {
    readonly organizationId: string;
    readonly id: string;
    readonly before: number;
    readonly erased: Set<string>;
  },
): void {
  const { organizationId, before, erased } = lineage;
  for (let id: string | null = lineage.id; id !== null && !erased.has(id); ) {
    const session = { organization_id: organizationId, id };
    const row = transaction.get(erasing.oldSession, { ...session, before });
    if (row === undefined) return;
    if (transaction.get(erasing.branchInUse, { ...session, before }) !== undefined) return;
    const parts = transaction.run(erasing.erase, { ...session, nothing });
    const errors = transaction.run(erasing.eraseErrors, { ...session, nothing });
    if (parts + errors > 0) erased.add(id);
    id = readRow(row).textOrNull("branched_from_session_id");
  }
}
