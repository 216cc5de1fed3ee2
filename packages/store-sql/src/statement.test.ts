import { expect, it } from "vitest";
import { compileStatement, insertInto, orderParameters } from "./statement.ts";

const numbered = { placeholder: (position: number) => `$${position}` };

it("turns names into the dialect's numbered or named placeholders", () => {
  const text = "SELECT id FROM steps WHERE at = :at AND (id = :id OR id > :at)";
  expect(compileStatement(text, numbered)).toEqual({
    text: "SELECT id FROM steps WHERE at = $1 AND (id = $2 OR id > $3)",
    names: ["at", "id", "at"],
  });
});

it("orders parameters as the statement names them and ignores others", () => {
  expect(orderParameters(["b", "a", "b"], { a: 1, b: null, c: "unused" })).toEqual([null, 1, null]);
});

it("rejects a missing parameter of a statement", () => {
  expect(() => orderParameters(["a"], { b: 1 })).toThrow("statement parameter a is missing");
});

it("inserts each column from the parameter of its name", () => {
  expect(insertInto("turns", ["id", "session_id"])).toBe(
    "INSERT INTO turns (id, session_id) VALUES (:id, :session_id)",
  );
});
