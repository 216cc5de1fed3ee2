import type { SessionView, View } from "@tollgate/store-engine";
import {
  correctionFromRow,
  correctionsOf,
  counterFromRow,
  holdStatements,
  type KnownRows,
  type KnownStep,
  openStepStatements,
  readRow,
  SessionReads,
  stepRecordFromRow,
  stepStatements,
  viewedKeyFromRow,
  viewResponses,
  viewRetention,
} from "@tollgate/store-sql";
import type { SqliteConnection } from "../database/connection.ts";
import { sqliteDialect } from "../database/sqlite-dialect.ts";
import { embeddingStatements } from "./carried.ts";
import { holdsFromText } from "./held.ts";

const corrections = correctionsOf(sqliteDialect);

/** What decisions read within a transaction: what is known, else what the database has. */
export function createView(
  connection: Pick<SqliteConnection, "get" | "all">,
  known: KnownRows,
): Omit<View, "budgetsVersion" | "openedBefore"> {
  const named = (statement: string, organizationId: string, id: string): unknown =>
    connection.get(statement, { organization_id: organizationId, id });
  return {
    ...viewSessions(connection, known),
    ...viewBudgets(connection, known),
    ...viewResponses(connection),
    ...viewRetention(connection, "steps"),
    key(organizationId, id) {
      const before = known.keys.get(organizationId, id);
      if (before) return before;
      const row = named(openStepStatements.key, organizationId, id);
      if (row === undefined) return null;
      const key = viewedKeyFromRow(row);
      known.keys.set(organizationId, id, key);
      return key;
    },
    step: (organizationId, id) =>
      findStep(connection, known, { organizationId, id })?.record ?? null,
    corrections: (organizationId, stepId) =>
      connection
        .all(corrections, {
          organization_id: organizationId,
          step_ids: sqliteDialect.list([stepId]),
        })
        .map((row) => ({
          attempt: readRow(row).integer("attempt"),
          correction: correctionFromRow(row),
        })),
    hasDecision: (organizationId, id) =>
      [openStepStatements.hasDecision, embeddingStatements.hasPermit].some(
        (statement) => named(statement, organizationId, id) !== undefined,
      ),
  };
}

function viewSessions(
  connection: Pick<SqliteConnection, "get" | "all">,
  { sessions, recent }: KnownRows,
): SessionView {
  const read = new SessionReads(connection);
  const session: View["session"] = (organizationId, id) => {
    const before = sessions.get(organizationId, id);
    if (before) return before;
    const found = read.session(organizationId, id);
    if (found) sessions.set(organizationId, id, found);
    return found;
  };
  return {
    sessionOfTurn: (organizationId, turnId) => read.sessionOfTurn(organizationId, turnId),
    recentMatches(owner, source, chain) {
      const place = { owner, source };
      const ids = recent.matches(place, chain);
      if (!ids) return read.recentMatches(owner, source, chain);
      return ids.flatMap((id) => session(owner.organizationId, id) ?? []);
    },
    matchingBranches: (session, chain) => read.matchingBranches(session, chain),
    chainBefore: (session, end) => read.chainBefore(session, end),
    session,
  };
}

function viewBudgets(
  connection: Pick<SqliteConnection, "get" | "all">,
  known: KnownRows,
): Pick<View, "holds" | "counter"> {
  return {
    holds({ step }) {
      const open = known.steps.get(step.organizationId, step.id);
      if (open?.holds) return open.holds;
      const { organizationId, id } = step;
      const row = connection.get(embeddingStatements.held, { organization_id: organizationId, id });
      const holds =
        row === undefined
          ? []
          : holdsFromText({ organizationId, stepId: id }, readRow(row).textOrNull("held"));
      if (open) open.holds = holds;
      return holds;
    },
    counter(key) {
      const before = known.counters.get(key);
      if (before) return before;
      const { budgetId, subject, periodStart } = key;
      const row = connection.get(holdStatements.counter, {
        budget_id: budgetId,
        subject,
        period_start: periodStart,
      });
      if (row === undefined) return null;
      const counter = counterFromRow(row);
      known.counters.set(counter);
      return counter;
    },
  };
}

function findStep(
  connection: Pick<SqliteConnection, "get">,
  { steps }: KnownRows,
  { organizationId, id }: { readonly organizationId: string; readonly id: string },
): KnownStep | null {
  const before = steps.get(organizationId, id);
  if (before) return before;
  const row = connection.get(stepStatements.step, { organization_id: organizationId, id });
  if (row === undefined) return null;
  const step = { record: stepRecordFromRow(row), holds: null };
  if (step.record.step.outcome === null) steps.set(organizationId, id, step);
  return step;
}
