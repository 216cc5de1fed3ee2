import type { Swept, TranscriptSweep } from "@tollgate/core/store";
import { erasing, leafToRow, opening, readRow } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { locking } from "../statements/locking.ts";

const nothing = new Uint8Array();

/** Erases what was said in the Sessions that were used the longest ago, organization by organization. */
export async function sweepTranscripts(
  transaction: Transaction,
  sweep: TranscriptSweep,
): Promise<Swept> {
  const { at, keep, limit } = sweep;
  await transaction.get(locking.sweep, {});
  const before = at - keep;
  const due = await transaction.all(erasing.organizationsOfOldSessions, { before, limit });
  let [looked, removed] = [0, 0];
  for (const row of due.map(readRow)) {
    const place = { organizationId: row.text("id"), mark: row.integer("mark") };
    const one = await sweepOrganization(transaction, sweep, { ...place, limit: limit - looked });
    looked += one.looked;
    removed += one.removed;
    if (looked === limit) break;
  }
  return { removed, more: looked === limit };
}

async function sweepOrganization(
  transaction: Transaction,
  { at, keep, leaf }: TranscriptSweep,
  place: { readonly organizationId: string; readonly mark: number; readonly limit: number },
): Promise<{ readonly looked: number; readonly removed: number }> {
  const { organizationId, mark, limit } = place;
  const before = at - keep;
  const organization = { organization_id: organizationId };
  const rows = await transaction.all(erasing.sessionsInOrder, { ...organization, mark, limit });
  const sessions = rows.map(readRow);
  const inUse = sessions.findIndex((session) => session.integer("updated_at") >= before);
  const old = inUse < 0 ? sessions : sessions.slice(0, inUse);
  const erased = new Set<string>();
  for (const session of old)
    await eraseLineage(transaction, { organizationId, id: session.text("id"), before, erased });
  const last = old.at(-1);
  if (last)
    await transaction.run(erasing.mark, { ...organization, updated: last.integer("updated") });
  if (erased.size > 0) {
    const record = leaf({ organizationId, sessionIds: [...erased] });
    await transaction.run(opening.insertLeaf, leafToRow(record, await transaction.next()));
  }
  return { looked: old.length, removed: erased.size };
}

/** A Session, and those it branched from, which may have waited for it. */
async function eraseLineage(
  transaction: Transaction,
  lineage: {
    readonly organizationId: string;
    readonly id: string;
    readonly before: number;
    readonly erased: Set<string>;
  },
): Promise<void> {
  const { organizationId, before, erased } = lineage;
  for (let id: string | null = lineage.id; id !== null && !erased.has(id); ) {
    const session = { organization_id: organizationId, id };
    const row = await transaction.get(locking.oldSession, { ...session, before });
    if (row === undefined) return;
    if ((await transaction.get(erasing.branchInUse, { ...session, before })) !== undefined) return;
    const parts = await transaction.run(erasing.erase, { ...session, nothing });
    const errors = await transaction.run(erasing.eraseErrors, { ...session, nothing });
    if (parts + errors > 0) erased.add(id);
    id = readRow(row).textOrNull("branched_from_session_id");
  }
}
