import { encodeCursor } from "@tollgate/core/store";
import { expect, it } from "vitest";
import { lists } from "./lists.ts";
import { type PageDialect, pageOf, selectOfEach, selectPage } from "./select-page.ts";

const dialect: PageDialect = {
  isOneOf: (column, parameter) => `${column} = ANY(${parameter})`,
  jsonArray: (columns) => `json_array(${columns.join(", ")})`,
  joinPage: (table, page) => `EACH ${table} (${page.trim()})`,
  list: (values) => JSON.stringify(values),
};

it("asks for one row more than the page holds, to learn whether another page follows", () => {
  const { parameters } = selectPage(lists.leaves, [], { cursor: null, limit: 2 });
  expect(parameters).toEqual({ page_limit: 3 });
  const row = (sequence: number) => ({ sequence });
  const read = (rows: readonly unknown[]) => pageOf(lists.leaves, rows, 2, (one) => one);
  expect(read([row(1), row(2), row(3)])).toEqual({
    data: [row(1), row(2)],
    nextCursor: encodeCursor("leaves", { order: 2, tie: "" }),
  });
  expect(read([row(1), row(2)])).toEqual({ data: [row(1), row(2)], nextCursor: null });
  expect(read([])).toEqual({ data: [], nextCursor: null });
});

it("begins after the cursor's position", () => {
  const cursor = encodeCursor("steps", { order: 500, tie: "7" });
  const { parameters } = selectPage(lists.steps, [], { cursor, limit: 10 });
  expect(parameters).toEqual({ page_order: 500, page_tie: 7, page_limit: 11 });
});

it.each([
  ["of another list", encodeCursor("keys", { order: 1, tie: "1" })],
  ["with a tie that is not a number", encodeCursor("steps", { order: 1, tie: "1e3" })],
  ["made up", "DROP TABLE steps"],
])("refuses a cursor %s", (_what, cursor) => {
  expect(() => selectPage(lists.steps, [], { cursor, limit: 10 })).toThrow(
    expect.objectContaining({ code: "invalid_argument" }),
  );
});

it("reads the first rows of each of some organizations", () => {
  const asked = { cursor: null, limit: 10, organizations: ["acme", "globex"] };
  const { text, parameters } = selectOfEach(lists.steps, [], asked, dialect);
  expect(text.replaceAll(/\s+/g, " ")).toContain(
    "FROM organizations o EACH steps (WHERE organization_id = o.id ORDER BY opened_at DESC, sequence DESC LIMIT :page_limit) WHERE o.id = ANY(:organizations)",
  );
  expect(parameters).toEqual({ page_limit: 10, organizations: '["acme","globex"]' });
});
