import type { EvidenceRepository } from "@tollgate/core/store";
import {
  administration,
  type Conditions,
  leafFromRow,
  leafToRow,
  lists,
  opening,
  readRow,
} from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import type { Transaction } from "../database/transaction.ts";
import { locking } from "../statements/locking.ts";
import { readPage } from "./read-page.ts";

export function createEvidenceRepository(
  database: Database,
  conditions: Conditions,
): EvidenceRepository {
  return {
    list: ({ organizationId }, paging) => {
      const ofOrganization = {
        text: "organization_id = :organization_id",
        parameters: { organization_id: organizationId },
      };
      return readPage(database, lists.leaves, [ofOrganization], paging, leafFromRow);
    },
    changes: (query, paging) =>
      readPage(database, lists.changes, conditions.ofChanges(query), paging, leafFromRow),
    async notePolicy(note) {
      const noted = await database.read(async (connection) =>
        versionIn(await connection.get(administration.policyVersion, {})),
      );
      // Every start asks; the lock is only for those with something to write.
      if (noted !== note.version)
        await database.write((transaction) => notePolicy(transaction, note), anyway);
    },
  };
}

const anyway = { evenIfDone: true };

async function notePolicy(
  transaction: Transaction,
  { version, leaf }: Parameters<EvidenceRepository["notePolicy"]>[0],
): Promise<void> {
  const before = versionIn(await transaction.get(locking.policyVersion, {}));
  if (before === version) return;
  await transaction.run(administration.notePolicy, { policy_version: version });
  await transaction.run(opening.insertLeaf, leafToRow(leaf(before), await transaction.next()));
}

function versionIn(row: unknown): string | null {
  return readRow(row).textOrNull("policy_version");
}
