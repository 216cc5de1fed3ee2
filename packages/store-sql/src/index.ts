/** What the SQL stores share: schema, statements, rows, filters and pages. For stores; an application needs none of it. */
export { type Conditions, createConditions } from "./conditions.ts";
export type { SqlDialect, SqlValue } from "./dialect.ts";
export { continued, listed } from "./index-conditions.ts";
export { lists } from "./lists.ts";
export { readById } from "./repositories/reading.ts";
export { createRepositories } from "./repositories/repositories.ts";
export { counterFromRow, counterToRow, moveToRow } from "./rows/budget-row.ts";
export { correctionFromRow, correctionToRow } from "./rows/correction-row.ts";
export { decisionColumns, decisionFromRow, decisionToRow } from "./rows/decision-row.ts";
export { errorToRow, insertError } from "./rows/error-row.ts";
export { leafToRow } from "./rows/leaf-row.ts";
export { partToRow } from "./rows/part-row.ts";
export { responseFromRow, responseRecordToRow } from "./rows/response-row.ts";
export { readRow } from "./rows/row-reader.ts";
export {
  sessionColumns,
  sessionFromRow,
  sessionRecordFromRow,
  sessionToRow,
} from "./rows/session-row.ts";
export {
  attemptToRow,
  endToRow,
  nextAttemptToRow,
  stepColumns,
  stepFromRow,
  stepReadColumns,
  stepRecordFromRow,
  stepToRow,
} from "./rows/step-row.ts";
export { schemaSteps, schemaVersion } from "./schema.ts";
export {
  type Answer,
  type Ask,
  play,
  playLater,
  type Script,
  type ScriptDatabase,
} from "./script.ts";
export { type Condition, type PagedList, pageOf, selectPage } from "./select-page.ts";
export {
  addParameters,
  type CompiledStatement,
  compileStatement,
  insertInto,
  orderParameters,
  type SqlParameters,
} from "./statement.ts";
export { administration } from "./statements/administration.ts";
export { correcting, correctionsOf } from "./statements/correcting.ts";
export { holding } from "./statements/holding.ts";
export { leasing } from "./statements/leasing.ts";
export { opening, recentMatches } from "./statements/opening.ts";
export { reading, selectById } from "./statements/reading.ts";
export { responding } from "./statements/responding.ts";
export { erasing, oldStepsOf } from "./statements/retaining.ts";
export { settling } from "./statements/settling.ts";
export { summedSteps } from "./summary-page.ts";
export { createKnownRecent } from "./view/known-recent.ts";
export { createKnownRows, type KnownRows, type KnownStep } from "./view/known-rows.ts";
export { viewKnown } from "./view/known-view.ts";
export { noteChange } from "./view/note-change.ts";
export type { Reads } from "./view/reads.ts";
export { viewedKeyFromRow, viewRows } from "./view/rows-view.ts";
export { SessionReads } from "./view/session-reads.ts";
export { viewResponses } from "./view/view-responses.ts";
export { viewRetention } from "./view/view-retention.ts";
export { type RowWrite, rowsOf, writes } from "./writes.ts";
