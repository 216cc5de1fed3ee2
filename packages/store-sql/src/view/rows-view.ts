import type {
  DueOrganizations,
  HeldContent,
  ResponseView,
  RetentionView,
  View,
} from "@tollgate/store-engine";
import type { SqlDialect } from "../dialect.ts";
import { counterFromRow, holdRows } from "../rows/budget-row.ts";
import { claimFromRow, claimKeyToRow, claimNameFromRow } from "../rows/claim-row.ts";
import { correctionFromRow } from "../rows/correction-row.ts";
import { readRow } from "../rows/row-reader.ts";
import { sessionRecordFromRow, toHex } from "../rows/session-row.ts";
import { stepRecordFromRow } from "../rows/step-row.ts";
import { administrationStatements } from "../statements/administration.ts";
import { claimStatements } from "../statements/claim.ts";
import { correctionsOf } from "../statements/correction.ts";
import { holdStatements } from "../statements/hold.ts";
import { openStepStatements } from "../statements/open-step.ts";
import { responseStatements } from "../statements/response.ts";
import { erasureStatements, retentionStatements } from "../statements/retention.ts";
import { stepStatements } from "../statements/step.ts";
import type { Reads } from "./reads.ts";
import { viewSessions } from "./sessions-view.ts";

/** The reads that differ between the databases. */
interface ReadRows {
  readonly dialect: SqlDialect;
  /** The table that Steps are removed from one by one. */
  readonly oldSteps: string;
}

/** The reads of decisions, each row as the database returns it. */
export function viewRows(reads: Reads, { dialect, oldSteps }: ReadRows): View {
  const corrections = correctionsOf(dialect);
  const named = (statement: string, organizationId: string, id: string): unknown =>
    reads.get(statement, { organization_id: organizationId, id });
  const step: View["step"] = (organizationId, id) => {
    const row = named(stepStatements.step, organizationId, id);
    return row === undefined ? null : stepRecordFromRow(row);
  };
  return {
    ...viewSessions(reads),
    ...viewResponses(reads),
    ...viewRetention(reads, oldSteps),
    budgetsVersion: () =>
      readRow(reads.get(administrationStatements.readState, {})).integer("budgets_version"),
    key(organizationId, id) {
      const row = named(openStepStatements.key, organizationId, id);
      return row === undefined ? null : viewedKeyFromRow(row);
    },
    step,
    openedBefore: step,
    holds: ({ step: { organizationId, id } }) =>
      reads
        .all(holdStatements.holds, { organization_id: organizationId, step_id: id })
        .map(holdRows.fromRow),
    claim(key) {
      const row = reads.get(claimStatements.claim, claimKeyToRow(key));
      return row === undefined ? null : claimFromRow(row);
    },
    counter({ budgetId, subject, periodStart }) {
      const key = { budget_id: budgetId, subject, period_start: periodStart };
      const row = reads.get(holdStatements.counter, key);
      return row === undefined ? null : counterFromRow(row);
    },
    corrections: (organizationId, stepId) =>
      reads
        .all(corrections, { organization_id: organizationId, step_ids: dialect.list([stepId]) })
        .map(correctionFromRow),
    hasDecision: (organizationId, id) =>
      named(openStepStatements.hasDecision, organizationId, id) !== undefined,
  };
}

/** The fields of a key that decisions read. */
function viewedKeyFromRow(row: unknown): NonNullable<ReturnType<View["key"]>> {
  const read = readRow(row);
  return {
    userId: read.text("user_id"),
    label: read.text("label"),
    expiresAt: read.integerOrNull("expires_at"),
    revokedAt: read.integerOrNull("revoked_at"),
    version: read.integer("version"),
  };
}

/** The reads of stored responses for decisions, each time from the database. */
function viewResponses({ get, all }: Reads): ResponseView {
  return {
    response(organizationId, id) {
      const row = get(responseStatements.response, { organization_id: organizationId, id });
      if (row === undefined) return null;
      const read = readRow(row);
      const idempotencyKey = read.bytesOrNull("idempotency_key");
      return {
        organizationId,
        userId: read.text("user_id"),
        keyId: read.text("key_id"),
        stepId: read.text("step_id"),
        expiresAt: read.integer("expires_at"),
        builtOn: read.textOrNull("built_on"),
        idempotencyKeySha256: idempotencyKey && toHex(idempotencyKey),
        keptBytes: read.integer("kept_bytes"),
      };
    },
    continuations: (organizationId, id, limit) =>
      all(responseStatements.continuations, { organization_id: organizationId, id, limit }).map(
        (row) => readRow(row).text("id"),
      ),
    expiredResponses: (at, limit) =>
      all(responseStatements.expired, { at, limit }).map((row) => {
        const read = readRow(row);
        return {
          organizationId: read.text("organization_id"),
          id: read.text("id"),
          builtOn: read.textOrNull("built_on"),
        };
      }),
    expiredClaims: (at, limit) => all(claimStatements.expired, { at, limit }).map(claimNameFromRow),
  };
}

/** The reads of retention, each time from the database. */
function viewRetention({ get, all }: Reads, stepsTable: string): Omit<RetentionView, "session"> {
  const oldSteps = retentionStatements(stepsTable);
  return {
    organizationsOfOldSteps(before, page) {
      const rows = all(oldSteps.organizations, { before, ...page });
      return dueIn(rows, { before, ...page }, idOf);
    },
    oldSteps: (organizationId, before, limit) =>
      all(oldSteps.ids, { organization_id: organizationId, before, limit }).map(idOf),
    organizationsOfOldSessions(before, page) {
      const rows = all(erasureStatements.organizationsOfOldSessions, { ...page });
      return dueIn(rows, { before, ...page }, (row) => ({
        organizationId: idOf(row),
        mark: readRow(row).integer("mark"),
      }));
    },
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

/** Those of a page's organizations whose oldest record is older than a time. */
function dueIn<Due>(
  rows: readonly unknown[],
  { before, limit }: { readonly before: number; readonly limit: number },
  fromRow: (row: unknown) => Due,
): DueOrganizations<Due> {
  const isDue = (row: unknown): boolean =>
    (readRow(row).integerOrNull("oldest") ?? before) < before;
  return {
    due: rows.filter(isDue).map(fromRow),
    next: rows.length < limit ? null : idOf(rows.at(-1)),
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
