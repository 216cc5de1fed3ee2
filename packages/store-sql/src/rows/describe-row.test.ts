import { expect, it } from "vitest";
import { describeRow } from "./describe-row.ts";

interface Limit {
  readonly id: string;
  readonly budgetId: string | null;
  readonly limit: number;
  readonly endsAt: number | null;
  readonly digest: Uint8Array;
  readonly scope: { readonly each: string };
  readonly models: readonly string[] | null;
  readonly per: "hour" | "day" | null;
}

const rows = describeRow<Limit>(
  {
    id: "text",
    budgetId: "textOrNull",
    limit: "integer",
    endsAt: "integerOrNull",
    digest: "bytes",
    scope: "json",
    models: "jsonOrNull",
    per: ["hour", "day", null],
  },
  { limit: "amount" },
);

const full: Limit = {
  id: "a",
  budgetId: "b",
  limit: 7,
  endsAt: 8,
  digest: Uint8Array.of(1),
  scope: { each: "user" },
  models: ["m"],
  per: "day",
};
const sparse: Limit = { ...full, budgetId: null, endsAt: null, models: null, per: null };

it("names columns in snake case, or by the given names", () => {
  const columns = ["id", "budget_id", "amount", "ends_at", "digest", "scope", "models", "per"];
  expect(rows.columns).toEqual(columns);
  expect(Object.keys(rows.toRow(full))).toEqual(columns);
});

it.each([full, sparse])("reads what it wrote", (record) => {
  expect(rows.fromRow(rows.toRow(record))).toEqual(record);
});

it("writes NULL for a JSON value that is null", () => {
  expect(rows.toRow(sparse)).toMatchObject({ scope: '{"each":"user"}', models: null });
});

it.each([
  ["budget_id", 1, "text"],
  ["amount", null, "a safe integer"],
  ["per", "week", "one of hour, day, null"],
])("refuses a column %s with %j", (column, value, expected) => {
  expect(() => rows.fromRow({ ...rows.toRow(full), [column]: value })).toThrow(
    `column ${column} does not hold ${expected}`,
  );
});
