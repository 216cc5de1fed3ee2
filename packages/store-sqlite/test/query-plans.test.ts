import { DatabaseSync } from "node:sqlite";
import {
  administrationStatements,
  type Condition,
  claimStatements,
  compileStatement,
  createConditions,
  erasureStatements,
  holdStatements,
  leaseStatements,
  lists,
  openStepStatements,
  type PagedList,
  responseStatements,
  retentionStatements,
  selectById,
  selectOwners,
  selectPage,
  stepReadColumns,
  stepStatements,
  transcriptStatements,
  writes,
} from "@tollgate/store-sql";
import { beforeAll, describe, expect, it } from "vitest";
import { sizeStatements } from "../src/content-bytes.ts";
import { sqliteStore } from "../src/index.ts";
import { ledgerStatements } from "../src/ledger.ts";
import { sqliteDialect } from "../src/sqlite-dialect.ts";
import { embeddingStatements } from "../src/step-row.ts";

const client = new DatabaseSync(":memory:");

beforeAll(() => sqliteStore({ client }).migrate());

function planOf(text: string): readonly string[] {
  const { text: compiled, names } = compileStatement(text, sqliteDialect);
  const rows = client.prepare(`EXPLAIN QUERY PLAN ${compiled}`).all(...names.map(() => null));
  return rows.map((row) => String(row["detail"]));
}

/** The tables that SQLite scans to run a statement. */
function tablesScanned(text: string): readonly string[] {
  // Constant rows, a list parameter, the 100 candidates, the messages, the heirs and the chain are not tables.
  const scan = /^SCAN (?!CONSTANT ROW|g VIRTUAL TABLE|recent$|m$|message$|h$|heir$|link$)/;
  return planOf(text).filter((detail) => scan.test(detail));
}

/** Searches by organization only, which read all rows of the organization. */
function organizationsRead(text: string): readonly string[] {
  return planOf(text).filter((detail) => detail.endsWith("(organization_id=?)"));
}

/** Scanned tables, and results sorted for lack of an index. */
function workOfPage(text: string): readonly string[] {
  const sorts = planOf(text).filter((detail) => detail.includes("FOR ORDER BY"));
  return [...tablesScanned(text), ...sorts];
}

/** Finding lapsed Steps reads every Step in flight, and a process start reads every process. */
const { lapsed: _lapsed, forget: _forget, ...leased } = leaseStatements;
/** The few budgets, raises and rate limits created at run time are read together. */
const {
  budgets: _budgets,
  raises: _raises,
  rateLimits: _rateLimits,
  ...administered
} = administrationStatements;

/** Statements on tables that SQLite doesn't have, because the rows of Steps contain the data. */
const { holds: _holds, ...held } = holdStatements;
const { keepHolds: _keep, ...carried } = embeddingStatements;

/** The writes of SQLite that embed nothing in the row of a Step. */
const { session, movedSession, response, hiddenResponse, removedResponse } = writes;
const { part, error, erasure, decision, correction, leaf } = writes;
const { claim, settledClaim, forgottenClaim, removedClaim } = writes;
const written = Object.entries({
  ...{ session, movedSession, response, hiddenResponse, removedResponse },
  ...{ part, error, erasure, decision, correction, leaf },
  ...{ claim, settledClaim, forgottenClaim, removedClaim },
}).map(([name, { statement }]) => [`write ${name}`, statement] as const);

const statements = {
  ...openStepStatements,
  ...Object.fromEntries(written),
  ...held,
  ...stepStatements,
  ...carried,
  ...transcriptStatements,
  ...responseStatements,
  ...Object.fromEntries(
    Object.entries(claimStatements).map(([name, text]) => [`claims ${name}`, text]),
  ),
  ...Object.fromEntries(
    Object.entries(sizeStatements).map(([name, text]) => [`size of ${name}`, text]),
  ),
  ...leased,
  ...administered,
};

describe("no statement of a request scans a table or all rows of an organization", () => {
  it.each(Object.entries(statements))("%s", (_name, text) => {
    expect([...tablesScanned(text), ...organizationsRead(text)]).toEqual([]);
  });

  it("keeps the holds of a removed Step by reading only that Step", () => {
    expect(planOf(embeddingStatements.keepHolds)).toEqual([
      expect.stringMatching(/^SEARCH s USING INDEX \w+ \(organization_id=\? AND id=\?\)$/),
      "SCAN h VIRTUAL TABLE INDEX 1:",
    ]);
  });

  it("reads only open Steps to find lapsed ones", () => {
    const plan = planOf(leaseStatements.lapsed);
    expect(plan).toContain("SCAN steps USING INDEX steps_open");
    expect(plan.filter((line) => line.startsWith("SCAN"))).toHaveLength(1);
  });

  it("finds continuations, expired responses and expired claims through their own indexes without sorting", () => {
    expect(planOf(responseStatements.continuations)).toEqual([
      "SEARCH responses USING COVERING INDEX responses_by_origin (organization_id=? AND built_on=?)",
    ]);
    expect(planOf(responseStatements.expired)).toEqual([
      "SEARCH responses USING INDEX responses_by_expiry (expires_at>? AND expires_at<?)",
    ]);
    expect(planOf(claimStatements.expired)).toEqual([
      "SEARCH claims USING COVERING INDEX claims_by_expiry (expires_at<?)",
    ]);
    expect(planOf(sizeStatements.expiredResponses)).toEqual(planOf(responseStatements.expired));
    expect(planOf(sizeStatements.expiredClaims)).toEqual([
      "SEARCH claims USING INDEX claims_by_expiry (expires_at<?)",
    ]);
  });

  it.each(Object.entries({ ...retentionStatements("steps"), ...erasureStatements }))(
    "%s reads only due rows of each organization",
    (_, text) => {
      // The list of organizations is scanned in order, because any may have something due.
      expect(planOf(text).filter((detail) => /^SCAN (?!o$|h$|heir$)/.test(detail))).toEqual([]);
      expect([...organizationsRead(text)]).toEqual([]);
    },
  );

  it.each(Object.entries(ledgerStatements))(
    "%s reads a chunk of the ledger in the order of an index",
    (_, text) => {
      // The page of each table is short enough to sort and to scan, and so is the last row of a table.
      const isPage = /^SCAN (?!\(subquery|steps$)/;
      expect(planOf(text).filter((detail) => isPage.test(detail))).toEqual([]);
      expect(organizationsRead(text)).toEqual([]);
      if (!text.includes("UNION ALL"))
        expect(workOfPage(text).filter((line) => line !== "SCAN steps")).toEqual([]);
    },
  );

  it("reads one row by its id", () => {
    expect(tablesScanned(selectById("steps", stepReadColumns))).toEqual([]);
    // Across organizations, a statement looks into a page of them.
    expect(tablesScanned(selectOwners("sessions"))).toEqual([]);
    expect(organizationsRead(selectOwners("steps"))).toEqual([]);
  });
});

describe("no page of an organization scans or sorts a table", () => {
  const conditions = createConditions(sqliteDialect);
  const organizationId = "acme";
  const placed = { cursor: null, limit: 20 };
  const pages: readonly (readonly [string, PagedList, readonly Condition[]])[] = [
    ["keys", lists.keys, conditions.ofKeys({ organizationId })],
    ["Steps", lists.steps, conditions.ofSteps({ organizationId, from: 1, to: 2 })],
    ["Steps of a Session", lists.steps, conditions.ofSteps({ organizationId, sessionId: ["s"] })],
    ["decisions", lists.decisions, conditions.ofDecisions({ organizationId })],
    [
      "Sessions of a key",
      lists.sessions,
      conditions.ofSessions({ organizationId, keyId: "k", source: "api" }),
    ],
    ["counters", lists.counters, conditions.ofCounters({ budgetId: "b", subject: "" })],
  ];

  it.each(pages)("%s", (_name, list, where) => {
    expect(workOfPage(selectPage(list, where, placed).text)).toEqual([]);
  });

  it("finds the Steps of a Session through their own index", () => {
    const where = conditions.ofSteps({ organizationId, sessionId: ["s"] });
    expect(planOf(selectPage(lists.steps, where, placed).text)).toEqual([
      "SEARCH steps USING INDEX steps_by_session (organization_id=? AND session_id=?)",
    ]);
  });
});
