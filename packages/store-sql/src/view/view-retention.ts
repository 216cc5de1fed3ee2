import type { RetentionView } from "@tollgate/store-engine";
import { readRow } from "../rows/row-reader.ts";
import { sessionRecordFromRow } from "../rows/session-row.ts";
import { erasureStatements, retentionStatements } from "../statements/retention.ts";
import type { Reads } from "./reads.ts";

/** The reads of retention, each time from the database. */
export function viewRetention(
  { get, all }: Reads,
  stepsTable: string,
): Omit<RetentionView, "session"> {
  const oldSteps = retentionStatements(stepsTable);
  return {
    organizationsOfOldSteps: (before, limit) =>
      all(oldSteps.organizations, { before, limit }).map(idOf),
    oldSteps: (organizationId, before, limit) =>
      all(oldSteps.ids, { organization_id: organizationId, before, limit }).map(idOf),
    organizationsOfOldSessions: (before, limit) =>
      all(erasureStatements.organizationsOfOldSessions, { before, limit }).map((row) => ({
        organizationId: idOf(row),
        mark: readRow(row).integer("mark"),
      })),
    sessionsInOrder: (organizationId, mark, limit) =>
      all(erasureStatements.sessionsInOrder, { organization_id: organizationId, mark, limit }).map(
        sessionRecordFromRow,
      ),
    isNeededSince({ organizationId: organization_id, id }, before) {
      const heir = { organization_id, id, before };
      return (
        get(erasureStatements.neededDirectly, heir) !== undefined ||
        get(erasureStatements.neededSince, heir) !== undefined
      );
    },
    holdsContent: ({ organizationId, id }) =>
      get(erasureStatements.heldContent, { organization_id: organizationId, id }) !== undefined,
  };
}

function idOf(row: unknown): string {
  return readRow(row).text("id");
}
