import { DatabaseSync } from "node:sqlite";
import {
  type Condition,
  compileStatement,
  createConditions,
  lists,
  openStepStatements,
  type PagedList,
  selectEnd,
  selectOfEach,
  selectPage,
  summedSteps,
} from "@tollgate/store-sql";
import { beforeAll, describe, expect, it } from "vitest";
import { sqliteStore } from "../src/index.ts";
import { selectSourcesOfKey } from "../src/repositories.ts";
import { sqliteDialect } from "../src/sqlite-dialect.ts";

const client = new DatabaseSync(":memory:");
const conditions = createConditions(sqliteDialect);
const organizationId = "acme";
const byOrganization = "organization_id=?";

beforeAll(() => sqliteStore({ client }).migrate());

function planOf(text: string): readonly string[] {
  const { text: compiled, names } = compileStatement(text, sqliteDialect);
  const rows = client.prepare(`EXPLAIN QUERY PLAN ${compiled}`).all(...names.map(() => null));
  return rows.map((row) => String(row["detail"]));
}

function pageOf(list: PagedList, where: readonly Condition[]): string {
  return selectPage(list, where, { cursor: null, limit: 20 }).text;
}

describe("a filtered page reads only its rows, through an index in its order", () => {
  const ofSteps = (query: Omit<Parameters<typeof conditions.ofSteps>[0], "organizationId">) =>
    pageOf(lists.steps, conditions.ofSteps({ organizationId, ...query }));
  const ofKeys = (query: Omit<Parameters<typeof conditions.ofKeys>[0], "organizationId">) =>
    pageOf(lists.keys, conditions.ofKeys({ organizationId, ...query }));
  const ofSessions = (query: { readonly keyId?: string; readonly source?: string }) =>
    pageOf(lists.sessions, conditions.ofSessions({ organizationId, ...query }));
  it.each([
    ["Steps of a key", ofSteps({ keyId: ["k"] }), "steps", "by_key", "key_id=?"],
    ["Steps of a model", ofSteps({ model: ["m"] }), "steps", "by_model", "<expr>=?"],
    ["failed Steps", ofSteps({ outcome: ["failed"] }), "steps", "unsuccessful", "unsuccessful=?"],
    ["keys of a user", ofKeys({ userId: "u" }), "api_keys", "by_user", "user_id=?"],
    [
      "live keys of a user",
      ofKeys({ userId: "u", live: { at: 1, is: true } }),
      "api_keys",
      "by_user",
      "user_id=?",
    ],
    ["Steps with metadata", ofSteps({ metadata: { a: "b" } }), "steps", "with_metadata", ""],
    ["Sessions", ofSessions({}), "sessions", "by_time", ""],
  ])("%s", (_name, text, table, index, by) => {
    const searched = [byOrganization, ...(by === "" ? [] : [by])].join(" AND ");
    expect(planOf(text)).toEqual([`SEARCH ${table} USING INDEX ${table}_${index} (${searched})`]);
  });

  it("lists the Sessions of a key by its sources", () => {
    const ofOne = `SEARCH s USING COVERING INDEX sessions_by_update (${byOrganization} AND key_id=?`;
    const plan = planOf(selectSourcesOfKey);
    expect(plan).toContain(`${ofOne})`);
    expect(plan).toContain(`${ofOne} AND source>?)`);
    expect(plan.filter((line) => /^SCAN (s|sessions)$/.test(line))).toEqual([]);
    expect(planOf(ofSessions({ keyId: "k", source: "api" }))).toEqual([
      `SEARCH sessions USING INDEX sessions_by_update (${byOrganization} AND key_id=? AND source=?)`,
    ]);
  });

  it("lists the decisions and denials of a key", () => {
    const ofKey = conditions.ofDecisions({ organizationId, keyId: ["k"] });
    expect(planOf(pageOf(lists.decisions, ofKey))).toEqual([
      `SEARCH decisions USING INDEX decisions_by_key (${byOrganization} AND key_id=?)`,
    ]);
    const permits = conditions.ofPermits({ organizationId, keyId: ["k"] }) ?? [];
    expect(planOf(pageOf(lists.steps, permits))).toEqual([
      `SEARCH steps USING INDEX steps_by_key (${byOrganization} AND key_id=?)`,
    ]);
    const denials = conditions.ofDecisions({ organizationId, effect: "deny" });
    expect(planOf(pageOf(lists.decisions, denials))).toEqual([
      `SEARCH decisions USING INDEX decisions_denied (${byOrganization})`,
    ]);
  });

  it("lists the Steps of a Turn among those of its Session", () => {
    const plan = planOf(ofSteps({ turnId: ["t"] }));
    expect(plan).toContain(
      `SEARCH steps USING INDEX steps_by_session (${byOrganization} AND session_id=?)`,
    );
    expect(plan).toContain(`SEARCH kept_turns USING PRIMARY KEY (${byOrganization} AND id=?)`);
    expect(plan).toContain(
      `SEARCH steps USING INDEX sqlite_autoindex_steps_1 (${byOrganization} AND id=?)`,
    );
  });
});

it("finds the end of a filtered page in an index, in its order", () => {
  const planOfEnd = (query: Omit<Parameters<typeof conditions.ofSteps>[0], "organizationId">) => {
    const where = conditions.ofSteps({ organizationId, userId: ["u"], ...query });
    const paging = { cursor: null, limit: 20, maxScanned: 1_000 };
    return planOf(selectEnd(lists.steps, where, paging).text);
  };
  const inIndex = (name: string) => `SEARCH steps USING COVERING INDEX steps_${name}`;
  expect(planOfEnd({})).toEqual([`${inIndex("by_time")} (${byOrganization})`]);
  // A second index would find rows beyond those that the page may scan.
  const ofKey = planOfEnd({ keyId: ["k"], model: ["m"] });
  expect(ofKey).toEqual([`${inIndex("by_key")} (${byOrganization} AND key_id=?)`]);
});

it("reads changes by time through partial indexes that requests don't write", () => {
  const placed = { from: 1, to: 2 };
  expect(
    planOf(pageOf(lists.changes, conditions.ofChanges({ organizationId, ...placed }))),
  ).toEqual([`SEARCH leaves USING INDEX leaves_changes (${byOrganization} AND at>? AND at<?)`]);
  expect(planOf(pageOf(lists.changes, conditions.ofChanges({ organizationId: null })))).toEqual([
    "SCAN leaves USING INDEX leaves_changes_of_all",
  ]);
});

it("reads the Steps of a summary through the index of their time or of the filter", () => {
  const planOfSummary = (query: { readonly keyId?: readonly string[] }) =>
    planOf(pageOf(summedSteps, conditions.ofSummary({ organizationId, by: [], ...query })));
  expect(planOfSummary({})).toEqual([`SEARCH steps USING INDEX steps_by_time (${byOrganization})`]);
  expect(planOfSummary({ keyId: ["k"] })).toEqual([
    `SEARCH steps USING INDEX steps_by_key (${byOrganization} AND key_id=?)`,
  ]);
});

describe("a page across organizations reads only the first rows of some of them", () => {
  it.each([
    ["keys", lists.keys, conditions.ofKeys({ organizationId: null }), "api_keys_by_time"],
    [
      "Sessions",
      lists.sessions,
      conditions.ofSessions({ organizationId: null }),
      "sessions_by_time",
    ],
    ["Steps", lists.steps, conditions.ofSteps({ organizationId: null }), "steps_by_time"],
    [
      "decisions",
      lists.decisions,
      conditions.ofDecisions({ organizationId: null }),
      "decisions_by_time",
    ],
  ])("%s", (_name, list, where, index) => {
    const asked = { cursor: null, limit: 20, organizations: [] };
    const plan = planOf(selectOfEach(list, where, asked, sqliteDialect).text);
    expect(plan.filter((line) => line.startsWith("SCAN"))).toEqual([
      "SCAN json_each VIRTUAL TABLE INDEX 1:",
    ]);
    expect(plan).toContainEqual(
      expect.stringMatching(`^SEARCH ${list.table} USING (COVERING )?INDEX ${index} \\(`),
    );
    // The key of a table of wide rows is a separate index.
    expect(plan.map((line) => line.replace(/INDEX sqlite_autoindex_\w+/, "PRIMARY KEY"))).toContain(
      `SEARCH r USING PRIMARY KEY (${byOrganization} AND id=?)`,
    );
    expect(plan.filter((line) => line.includes("FOR ORDER BY"))).toEqual([]);
  });
});

it("finds candidate Sessions in their own index only", () => {
  expect(planOf(openStepStatements.recentMatches)).toContain(
    `SEARCH sessions USING COVERING INDEX sessions_by_update (${byOrganization} AND key_id=? AND source=?)`,
  );
});
