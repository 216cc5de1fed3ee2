/** Code that the SQL stores share: schema, statements, rows, filters and pages. For stores; an application needs none of it. */
export { type Conditions, createConditions } from "./conditions.ts";
export type { SqlDialect, SqlValue } from "./dialect.ts";
export { continued, listed } from "./index-conditions.ts";
export { lists } from "./lists.ts";
export { mergedPage } from "./repositories/merged-page.ts";
export { ownersOf, pageFrom, readWhere } from "./repositories/reading.ts";
export { createRepositories } from "./repositories/repositories.ts";
export { counterFromRow, counterToRow, moveToRow } from "./rows/budget-row.ts";
export { claimKeyToRow } from "./rows/claim-row.ts";
export { decisionFromRow, decisionToRow, verdictOf } from "./rows/decision-row.ts";
export { snakeCase } from "./rows/describe-row.ts";
export { errorRows } from "./rows/error-row.ts";
export { leafToRow } from "./rows/leaf-row.ts";
export { partToRow } from "./rows/part-row.ts";
export { readRow } from "./rows/row-reader.ts";
export { sessionFromRow, sessionToRow } from "./rows/session-row.ts";
export {
  endColumns,
  endToRow,
  nextAttemptColumns,
  nextAttemptToRow,
  stepColumns,
  stepReadColumns,
  stepToRow,
} from "./rows/step-row.ts";
export { needingMigration, schemaSteps, schemaVersion } from "./schema.ts";
export {
  type Answer,
  type Ask,
  find,
  play,
  playLater,
  type Script,
  type ScriptDatabase,
} from "./script.ts";
export {
  type Condition,
  type PagedList,
  type PageSource,
  selectEnd,
  selectFirst,
  selectOfEach,
  selectPage,
} from "./select-page.ts";
export {
  addParameters,
  type CompiledStatement,
  compileStatement,
  insertInto,
  orderParameters,
  type SqlParameters,
} from "./statement.ts";
export { administrationStatements } from "./statements/administration.ts";
export { checkpointStatements } from "./statements/checkpoint.ts";
export { claimStatements } from "./statements/claim.ts";
export { holdStatements } from "./statements/hold.ts";
export { leaseStatements } from "./statements/lease.ts";
export { openStepStatements, recentMatches } from "./statements/open-step.ts";
export { responseStatements } from "./statements/response.ts";
export { erasureStatements, retentionStatements } from "./statements/retention.ts";
export { stepStatements } from "./statements/step.ts";
export { selectById, selectOwners, transcriptStatements } from "./statements/transcript.ts";
export { summedSteps } from "./summary-page.ts";
export { type ColumnType, columnsOf, columnTypesOf, type TableName } from "./tables.ts";
export { createKnownRecent } from "./view/known-recent.ts";
export { createKnownRows, type KnownRows } from "./view/known-rows.ts";
export { viewKnown } from "./view/known-view.ts";
export { noteChange } from "./view/note-change.ts";
export type { Reads } from "./view/reads.ts";
export { viewRows } from "./view/rows-view.ts";
export { recentSessions, viewSessions } from "./view/sessions-view.ts";
export { type RowWrite, rowsOf, writes } from "./writes.ts";
