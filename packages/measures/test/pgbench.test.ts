import { expect, it } from "vitest";
import { rateIn } from "../src/pgbench/run-pgbench.ts";
import { toScript } from "../src/pgbench/to-script.ts";

it("repeats the recorded statements, each time with another id", () => {
  const text = "SELECT *\n  FROM open_step($1, $2, $3, $4, $10)";
  const values = ["one", '{"id":"one"}', Buffer.from([1, 255]), null, 5, 6, 7, 8, 9, "it's \\ "];
  expect(toScript([{ text, values }], "one")).toBe(
    [
      "\\set number random(1, 9000000000000000)",
      `SELECT * FROM open_step(E'' || CAST(:number AS TEXT) || E'', E'{"id"\\x3a"' || CAST(:number AS TEXT) || E'"}', '\\x01ff', NULL, E'it''s \\\\ ');`,
      "",
    ].join("\n"),
  );
});

it("refuses a parameter that it does not know how to write", () => {
  expect(() => toScript([{ text: "SELECT $1", values: [true] }], "one")).toThrow("boolean");
});

it("reads the rate only of a run in which nothing failed", () => {
  const rate = "tps = 123.5 (without initial connection time)";
  expect(rateIn(`number of failed transactions: 0 (0.000%)\n${rate}\n`)).toBe(123.5);
  expect(() => rateIn(`number of failed transactions: 3 (1.000%)\n${rate}\n`)).toThrow("failed");
  expect(() => rateIn("connection refused")).toThrow("connection refused");
});
