import type { EvidenceRepository } from "@tollgate/core/store";
import type { Conditions } from "../conditions.ts";
import type { SqlDialect } from "../dialect.ts";
import { lists } from "../lists.ts";
import { leafFromRow } from "../rows/leaf-row.ts";
import { readRow } from "../rows/row-reader.ts";
import { anyway, get, run, type Script, type ScriptDatabase } from "../script.ts";
import { administrationStatements } from "../statements/administration.ts";
import { insertLeaf, type ReadPage } from "./reading.ts";

type PolicyNote = Parameters<EvidenceRepository["notePolicy"]>[0];

export function createEvidenceRepository(
  database: ScriptDatabase,
  { locked }: SqlDialect,
  conditions: Conditions,
  readPage: ReadPage,
): EvidenceRepository {
  const versionToChange = locked(administrationStatements.policyVersion);
  return {
    list: ({ organizationId }, paging) => {
      const ofOrganization = {
        text: "organization_id = :organization_id",
        parameters: { organization_id: organizationId },
      };
      return readPage(lists.leaves, [ofOrganization], paging, leafFromRow);
    },
    changes: (query, paging) =>
      readPage(lists.changes, conditions.ofChanges(query), paging, leafFromRow),
    async notePolicy(note) {
      const noted = await database.read(() => versionIn(administrationStatements.policyVersion));
      // Every start asks; the lock is only for those with something to write.
      if (noted !== note.version)
        await database.write(() => notePolicy(versionToChange, note), anyway);
    },
  };
}

function* notePolicy(versionToChange: string, { version, leaf }: PolicyNote): Script<void> {
  const before = yield* versionIn(versionToChange);
  if (before === version) return;
  yield* run(administrationStatements.notePolicy, { policy_version: version });
  yield* insertLeaf(leaf(before));
}

function* versionIn(statement: string): Script<string | null> {
  return readRow(yield* get(statement, {})).textOrNull("policy_version");
}
