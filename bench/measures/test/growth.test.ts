import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PostgresClient, type PostgresPool, postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";
import { startPostgres } from "@tollgate/testing/postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { compare, median } from "../src/growth/compare.ts";
import { fillPostgres, fillSqlite } from "../src/growth/fill.ts";
import { measureOrganizations, questions } from "../src/growth/questions.ts";

const size = { steps: 10_000, sessions: 2_000 };
/**
 * A page of 20 needs no more rows than this, even if only one in five has the key in the query. If no index serves its
 * filter, a page is first tried on so many.
 */
const maxRows = 200;

describe("PostgreSQL", () => {
  const started = startPostgres();
  let pool: pg.Pool;
  const plans: unknown[] = [];
  beforeAll(async () => {
    const { url } = await started;
    await fillPostgres({ url, schema: "tollgate", size });
    pool = new pg.Pool({ connectionString: url, max: 1 });
    // A closing connection may still report an error.
    pool.on("error", () => {});
  }, 60_000);
  afterAll(async () => {
    await pool.end();
    await (await started).stop();
  });

  /** A pool that explains every statement before it runs. */
  const explaining: PostgresPool = {
    on: () => {},
    off: () => {},
    connect: (taken) =>
      pool.connect((error, client) => taken(error, client && explainingClient(client))),
  };

  function explainingClient(client: PostgresClient): PostgresClient {
    return {
      query(query, answered) {
        const { text, values = [] } = query;
        const explain = { text: `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values };
        if (!text.includes("LIMIT")) return client.query(query, answered);
        client.query(explain, (error, result) => {
          if (!result) return answered(error, result);
          plans.push(result.rows);
          client.query(query, answered);
        });
      },
      on: (event, listener) => client.on(event, listener),
      off: (event, listener) => client.off(event, listener),
      release: (destroy) => client.release(destroy),
    };
  }

  it.each(questions.map((question) => [question.name, question] as const))(
    "reads few more rows than it returns: %s",
    async (_name, question) => {
      const store = postgresStore({ pool: explaining }, { schema: "tollgate" });
      plans.length = 0;
      await question.ask(store, size, 0);
      await store.close();
      for (const scan of plans.flatMap(scansOf))
        expect(scan.rows, scan.name).toBeLessThanOrEqual(maxRows);
      if (question.statements) expect(plans).toHaveLength(question.statements);
    },
  );
});

describe("SQLite", () => {
  it("answers every question on a generated history, and measures it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-growth-"));
    const filename = join(folder, "history.db");
    await fillSqlite(filename, { steps: 200, sessions: 100 });
    const store = sqliteStore({ filename });
    onTestFinished(async () => {
      await store.close();
      rmSync(folder, { recursive: true });
    });
    const filled = { store, size: { steps: 200, sessions: 100 } };
    for (const question of questions) {
      if (question.name.startsWith("open")) continue;
      const { few, many } = await compare(question, filled, filled, 1);
      expect(few * many, question.name).toBeGreaterThan(0);
    }
  });
});

it("runs the work on all organizations on a history of many, and measures it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-growth-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const filename = join(folder, "many.db");
  await fillSqlite(filename, { steps: 60, sessions: 30, organizations: 30 });
  const store = sqliteStore({ filename });
  const { data } = await store.steps.list({ organizationId: null }, { cursor: null, limit: 100 });
  expect(new Set(data.map((step) => step.organizationId)).size).toBe(30);
  const works = await measureOrganizations(store);
  expect(works.length).toBeGreaterThan(5);
  for (const { name, time } of works) expect(time, name).toBeGreaterThan(0);
});

it("computes the median", () => {
  expect(median([5, 1, 9])).toBe(5);
});

/** The nodes of a plan that read a table or an index, each with its number of rows. */
function scansOf(node: unknown): readonly { readonly name: string; readonly rows: number }[] {
  if (Array.isArray(node)) return node.flatMap(scansOf);
  if (typeof node !== "object" || node === null) return [];
  const within = Object.values(node).flatMap(scansOf);
  if (!("Relation Name" in node)) return within;
  const number = (name: string): number => Number(Reflect.get(node, name) ?? 0);
  const rows = (number("Actual Rows") + number("Rows Removed by Filter")) * number("Actual Loops");
  const name = `${Reflect.get(node, "Node Type")} ${Reflect.get(node, "Index Name")}`;
  return [...within, { name, rows }];
}
