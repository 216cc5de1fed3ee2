import type { StepRepository } from "@tollgate/core/store";
import { sweepSteps } from "@tollgate/store-engine";
import {
  type Conditions,
  lists,
  stepFromRow,
  summaryOf,
  summedFromRow,
  summedSteps,
} from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import { contentsOf } from "./contents-of.ts";
import { correctedSteps, wholeStep, wholeSteps } from "./corrected-steps.ts";
import { readPage } from "./read-page.ts";

export function createStepRepository(database: Database, conditions: Conditions): StepRepository {
  return {
    get: (organizationId, id) =>
      database.read((connection) => wholeStep(connection, organizationId, id)),
    async list(query, paging) {
      const page = await readPage(
        database,
        lists.steps,
        conditions.ofSteps(query),
        paging,
        stepFromRow,
      );
      const data = await database.read((connection) => wholeSteps(connection, page.data));
      return { ...page, data };
    },
    async summarize(query, paging) {
      const where = conditions.ofSummary(query);
      const page = await readPage(database, summedSteps, where, paging, summedFromRow);
      const data = await database.read((connection) => correctedSteps(connection, page.data));
      return summaryOf(query, { ...page, data });
    },
    contents: (organizationId, id) =>
      database.read((connection) => contentsOf(connection, organizationId, id)),
    sweep: (sweep) => database.erase(({ carryOut }) => carryOut((view) => sweepSteps(view, sweep))),
  };
}
