import type { HeldContent, RetentionView } from "@tollgate/store-engine";
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
    contents({ organizationId, id }, limit) {
      const named = { organization_id: organizationId, id };
      const parts = all(erasureStatements.heldParts, { ...named, limit });
      const rest = limit - parts.length;
      const errors = rest > 0 ? all(erasureStatements.heldErrors, { ...named, limit: rest }) : [];
      return [
        ...parts.map((row) => contentFromRow("part", row)),
        ...errors.map((row) => contentFromRow("error", row)),
      ];
    },
  };
}

function contentFromRow(of: HeldContent["of"], row: unknown): HeldContent {
  const read = readRow(row);
  const [stepId, place] = [read.text("step_id"), read.integer("place")];
  return { of, stepId, place, bytes: read.integer("bytes") };
}

function idOf(row: unknown): string {
  return readRow(row).text("id");
}
