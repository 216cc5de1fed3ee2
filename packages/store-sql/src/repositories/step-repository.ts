import type { DecisionRepository, Step, StepContents, StepRepository } from "@tollgate/core/store";
import { stepContents, withCorrections, withErrors } from "@tollgate/store-engine";
import type { SqlDialect } from "../dialect.ts";
import { lists } from "../lists.ts";
import { correctionFromRow } from "../rows/correction-row.ts";
import { decisionFromRow } from "../rows/decision-row.ts";
import { errorsOf, hasError, messageFromRow } from "../rows/error-row.ts";
import { readRow } from "../rows/row-reader.ts";
import { stepFromRow, stepReadColumns } from "../rows/step-row.ts";
import { summedFromRow } from "../rows/summed-row.ts";
import { all, type Script } from "../script.ts";
import { correctionsOf } from "../statements/correction.ts";
import { transcriptStatements } from "../statements/transcript.ts";
import { summaryOf, summedSteps } from "../summary-page.ts";
import { columnsOf } from "../tables.ts";
import { type Access, readById, readWhere } from "./reading.ts";

/** The Steps of a database. Each store sweeps them in its own way. */
export function createStepRepository({
  database,
  dialect,
  conditions,
  readPage,
}: Access): Omit<StepRepository, "sweep"> {
  const { wholeStep, wholeSteps, correctedSteps } = stepsIn(dialect);
  return {
    get: (organizationId, id) =>
      readWhere(database, steps, { organizationId, id }, (owner) => wholeStep(owner, id)),
    async list(query, paging) {
      const page = await readPage(lists.steps, conditions.ofSteps(query), paging, stepFromRow);
      return { ...page, data: await database.read(() => wholeSteps(page.data)) };
    },
    async summarize(query, paging) {
      const where = conditions.ofSummary(query);
      const page = await readPage(summedSteps, where, paging, summedFromRow);
      const data = await database.read(() => correctedSteps(page.data));
      return summaryOf(query, { ...page, data });
    },
    contents: (organizationId, id) =>
      readWhere(database, steps, { organizationId, id }, (owner) => contentsOf(owner, id)),
  };
}

export function createDecisionRepository({
  database,
  conditions,
  readPage,
}: Access): DecisionRepository {
  const decisions = { name: "decisions", columns: columnsOf("decisions") };
  return {
    get: (organizationId, id) =>
      readWhere(database, decisions, { organizationId, id }, (organizationId) =>
        readById(decisions, { organizationId, id }, decisionFromRow),
      ),
    list: (query, paging) =>
      readPage(lists.decisions, conditions.ofDecisions(query), paging, decisionFromRow),
  };
}

const steps = { name: "steps", columns: stepReadColumns };

/** The parts of a Step that its corrections need. */
type Correctable = Pick<Step, "organizationId" | "id"> & Parameters<typeof withCorrections>[0];

/** Steps with their corrections and their providers' error texts. */
function stepsIn(dialect: SqlDialect): {
  readonly wholeStep: (organizationId: string, id: string) => Script<Step | null>;
  readonly wholeSteps: (page: readonly Step[]) => Script<readonly Step[]>;
  readonly correctedSteps: <One extends Correctable>(
    page: readonly One[],
  ) => Script<readonly One[]>;
} {
  const errors = errorsOf(dialect);
  const corrections = correctionsOf(dialect);

  /** Runs a statement for Steps once for each of their organizations. Returns a function that finds the rows of a Step. */
  function* rowsOf(
    statement: string,
    page: readonly Correctable[],
  ): Script<(step: Correctable) => readonly unknown[]> {
    const found = new Map<string, Map<string, unknown[]>>();
    for (const [organizationId, own] of Map.groupBy(page, (step) => step.organizationId)) {
      const step_ids = dialect.list(own.map(({ id }) => id));
      const rows = yield* all(statement, { organization_id: organizationId, step_ids });
      found.set(
        organizationId,
        Map.groupBy(rows, (row) => readRow(row).text("step_id")),
      );
    }
    return ({ organizationId, id }) => found.get(organizationId)?.get(id) ?? [];
  }
  function* correctedSteps<One extends Correctable>(page: readonly One[]): Script<readonly One[]> {
    const found = yield* rowsOf(corrections, page);
    return page.map((step) => withCorrections(step, found(step).map(correctionFromRow)));
  }
  function* wholeSteps(page: readonly Step[]): Script<readonly Step[]> {
    const found = yield* rowsOf(errors, page.filter(hasError));
    const corrected = yield* correctedSteps(page);
    return corrected.map((step) => withErrors(step, found(step).map(messageFromRow)));
  }
  return {
    correctedSteps,
    wholeSteps,
    *wholeStep(organizationId, id) {
      const step = yield* readById(steps, { organizationId, id }, stepFromRow);
      return step && ((yield* wholeSteps([step]))[0] ?? null);
    },
  };
}

const places = { name: "steps", columns: ["organization_id", "id", "session_id", "length"] };

/** The record of one Step; null if the Step does not exist. */
function* contentsOf(organizationId: string, id: string): Script<StepContents | null> {
  const place = yield* readById(places, { organizationId, id }, readRow);
  if (!place) return null;
  const sessionId = place.textOrNull("session_id");
  if (sessionId === null) return stepContents(new Map());
  const rows = yield* all(transcriptStatements.contents, {
    organization_id: place.text("organization_id"),
    session_id: sessionId,
    length: place.integer("length"),
    id,
  });
  const parts = rows.map(readRow);
  return stepContents(
    new Map(parts.map((part) => [part.text("kind"), part.bytesOrNull("content")])),
  );
}
