import { DatabaseSync } from "node:sqlite";
import {
  compileStatement,
  mergedPage,
  type PagedList,
  playLater,
  type ScriptDatabase,
} from "@tollgate/store-sql";
import { expect, it } from "vitest";
import { sqliteDialect } from "../src/sqlite-dialect.ts";

const list: PagedList = {
  name: "notes",
  table: "notes",
  byOrganization: true,
  columns: ["organization_id", "id"],
  order: "updated",
  direction: "DESC",
  tie: null,
};
const seldom = { ...list, table: "old_notes" };

/** Twenty organizations with a note each. `change` runs after each read. */
function open(change: (read: number, client: DatabaseSync) => void) {
  const client = new DatabaseSync(":memory:");
  client.exec(`CREATE TABLE organizations (id TEXT PRIMARY KEY);
    CREATE TABLE notes (organization_id TEXT, id TEXT, updated INTEGER);
    CREATE TABLE old_notes (organization_id TEXT, id TEXT, updated INTEGER)`);
  for (let at = 1; at <= 20; at++) {
    const id = String(at).padStart(2, "0");
    client.exec(`INSERT INTO organizations VALUES ('${id}');
      INSERT INTO notes VALUES ('${id}', 'note ${at}', ${at})`);
  }
  let reads = 0;
  const read: ScriptDatabase["read"] = (script) =>
    playLater(script(), async (ask) => {
      if (ask.wants !== "rows") return expect.fail("A page writes nothing.");
      const { text, names } = compileStatement(ask.text, sqliteDialect);
      const rows = client.prepare(text).all(...names.map((name) => ask.parameters[name] ?? null));
      change(++reads, client);
      return { rows, count: 0 };
    });
  return async (lists: readonly PagedList[], limit: number): Promise<readonly string[]> => {
    const sources = lists.map((one) => ({ list: one, conditions: [] }));
    const ids: string[] = [];
    let cursor: string | null = null;
    do {
      const page = await mergedPage({ read }, { list, sources }, { cursor, limit }, sqliteDialect);
      ids.push(...page.data.map((row) => String(Reflect.get(Object(row), "id"))));
      cursor = page.nextCursor;
    } while (cursor !== null);
    return ids;
  };
}

const noteIds = (from: number, to: number) =>
  Array.from({ length: from - to + 1 }, (_, at) => `note ${from - at}`);

it("a walk goes on to the end although a row moves to the front while a page is read", async () => {
  // The third read finds the organizations of the second page.
  const walk = open((read, client) => {
    if (read === 3) client.exec("UPDATE notes SET updated = 99 WHERE id = 'note 13'");
  });
  expect(await walk([list], 5)).toEqual([...noteIds(20, 14), ...noteIds(12, 1)]);
});

it("a row that moves to another table while a page is read is in the page once", async () => {
  const walk = open((read, client) => {
    if (read !== 2) return;
    client.exec("INSERT INTO old_notes SELECT * FROM notes WHERE id = 'note 19'");
    client.exec("DELETE FROM notes WHERE id = 'note 19'");
  });
  expect(await walk([list, seldom], 5)).toEqual(noteIds(20, 1));
});
