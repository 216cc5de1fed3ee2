import type { DecisionRepository } from "@tollgate/core/store";
import {
  type Condition,
  type Conditions,
  decisionColumns,
  decisionFromRow,
  lists,
  type PagedList,
  pageOf,
  readRow,
  selectById,
  selectPage,
} from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import { sqliteDialect } from "../database/sqlite-dialect.ts";
import { readSnapshot } from "./read-at-once.ts";

/** Most decisions are permits that their Steps carry; the others have rows of their own. */
export function createDecisionRepository(
  database: Database,
  conditions: Conditions,
): DecisionRepository {
  return {
    get: (organizationId, id) =>
      database.read((connection) => {
        const place = { organization_id: organizationId, id };
        const permit = connection.get(permitById(organizationId === null), place);
        if (permit !== undefined) return decisionFromRow(decisionRowOf(permit));
        const row = connection.get(decisionById(organizationId === null), place);
        return row === undefined ? null : decisionFromRow(row);
      }),
    async list(query, paging) {
      const permitConditions = conditions.ofPermits(query);
      const decisionConditions = conditions.ofDecisions(query);
      const rows = await readSnapshot(database, (connection) => {
        const read = (list: PagedList, where: readonly Condition[]): readonly unknown[] => {
          const { text, parameters } = selectPage(list, where, paging, sqliteDialect);
          return connection.query(text, parameters);
        };
        const ofSteps = permitConditions ? read(permits, permitConditions).map(decisionRowOf) : [];
        return [...ofSteps, ...read(lists.decisions, decisionConditions)];
      });
      return pageOf(lists.decisions, rows.sort(newestFirst), paging.limit, decisionFromRow);
    },
  };
}

const permitColumns = [
  ...["organization_id", "decision_id", "user_id", "key_id", "opened_at", "verdict", "facts"],
  ...["policy_version", "sequence"],
];

/** Steps by when they opened, which is when their permits were given. */
const permits: PagedList = {
  ...lists.steps,
  name: lists.decisions.name,
  columns: permitColumns,
};

function permitById(acrossOrganizations: boolean): string {
  const text = selectById("steps", permitColumns, acrossOrganizations, "decision_id");
  return text.replace(":id", ":id AND r.verdict IS NOT NULL");
}

function decisionById(acrossOrganizations: boolean): string {
  return selectById("decisions", decisionColumns, acrossOrganizations);
}

/** A permit that a Step carries, as the row of a decision. */
function decisionRowOf(row: unknown): object {
  const read = readRow(row);
  return {
    ...Object(row),
    id: read.text("decision_id"),
    effect: "permit",
    at: read.integer("opened_at"),
    first_decision_id: null,
    refused_by: null,
    refusal: null,
  };
}

function newestFirst(a: unknown, b: unknown): number {
  const [one, other] = [readRow(a), readRow(b)];
  return (
    other.integer("at") - one.integer("at") || other.integer("sequence") - one.integer("sequence")
  );
}
