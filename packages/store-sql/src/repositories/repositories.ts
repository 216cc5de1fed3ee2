import type { SessionRepository, StepRepository, Store } from "@tollgate/core/store";
import { createConditions } from "../conditions.ts";
import type { SqlDialect } from "../dialect.ts";
import { lists } from "../lists.ts";
import { sessionColumns, sessionFromRow } from "../rows/session-row.ts";
import type { ScriptDatabase } from "../script.ts";
import { createBudgetRepository, createRateLimitRepository } from "./budget-repository.ts";
import { createConnectionRepository } from "./connection-repository.ts";
import { createEvidenceRepository } from "./evidence-repository.ts";
import { createKeyRepository } from "./key-repository.ts";
import { createReadPage, readById } from "./reading.ts";
import { createDecisionRepository, createStepRepository } from "./step-repository.ts";

/** The repositories that read and write alike on every database. */
export interface SqlRepositories
  extends Pick<
    Store,
    "keys" | "connections" | "decisions" | "budgets" | "rateLimits" | "evidence"
  > {
  readonly steps: Omit<StepRepository, "sweep">;
  readonly sessions: Pick<SessionRepository, "get" | "list">;
}

/** Makes them of a database and what differs in its SQL. A store adds what its own rows and its driver need. */
export function createRepositories(database: ScriptDatabase, dialect: SqlDialect): SqlRepositories {
  const conditions = createConditions(dialect);
  const readPage = createReadPage(database, dialect);
  return {
    keys: createKeyRepository(database, dialect, conditions, readPage),
    connections: createConnectionRepository(database),
    sessions: {
      get: (organizationId, id) =>
        database.read(() => readById(sessions, { organizationId, id }, sessionFromRow)),
      list: (query, paging) =>
        readPage(lists.sessions, conditions.ofSessions(query), paging, sessionFromRow),
    },
    steps: createStepRepository(database, dialect, conditions, readPage),
    decisions: createDecisionRepository(database, conditions, readPage),
    budgets: createBudgetRepository(database, dialect, conditions, readPage),
    rateLimits: createRateLimitRepository(database, dialect),
    evidence: createEvidenceRepository(database, dialect, conditions, readPage),
  };
}

const sessions = { name: "sessions", columns: sessionColumns };
