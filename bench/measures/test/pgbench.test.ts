import { expect, it } from "vitest";
import { rateIn, toScript } from "../src/pgbench/script.ts";

function integers(...values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries()) buffer.writeInt32BE(value, 4 * at);
  return buffer;
}

/** An array in PostgreSQL's binary format. */
function arrayOf(type: number, ...elements: readonly (Buffer | null)[]): Buffer {
  const sized = elements.flatMap((one) => (one ? [integers(one.length), one] : [integers(-1)]));
  return Buffer.concat([integers(1, 0, type, elements.length, 1), ...sized]);
}

it("repeats the recorded statements with a new id each time", () => {
  const text = "SELECT *\n  FROM commit($1, $2, $3, $4, $5, $6)";
  const values = [
    '{"id":"one"}',
    arrayOf(25, Buffer.from("one"), null, Buffer.from("it's \\ ")),
    arrayOf(20, Buffer.from([0, 0, 0, 0, 0, 0, 1, 2])),
    arrayOf(17, Buffer.from([1, 255])),
    null,
    arrayOf(16_384, Buffer.concat([integers(2, 25, 3), Buffer.from("one"), integers(20, -1)])),
  ];
  expect(toScript([{ text, values }], "one")).toBe(
    [
      "\\set number random(1, 9000000000000000)",
      `SELECT * FROM commit(E'{"id"\\x3a"' || CAST(:number AS TEXT) || E'"}', ARRAY[E'' || CAST(:number AS TEXT) || E'', NULL, E'it''s \\\\ '], ARRAY[258], ARRAY[CAST('\\x01ff' AS BYTEA)], NULL, ARRAY[ROW(E'' || CAST(:number AS TEXT) || E'', NULL)]);`,
      "",
    ].join("\n"),
  );
});

it("rejects a parameter of an unknown type", () => {
  expect(() => toScript([{ text: "SELECT $1", values: [true] }], "one")).toThrow("boolean");
});

it("reads the rate only if no transaction failed", () => {
  const rate = "tps = 123.5 (without initial connection time)";
  expect(rateIn(`number of failed transactions: 0 (0.000%)\n${rate}\n`)).toBe(123.5);
  expect(() => rateIn(`number of failed transactions: 3 (1.000%)\n${rate}\n`)).toThrow("failed");
  expect(() => rateIn("connection refused")).toThrow("connection refused");
});
