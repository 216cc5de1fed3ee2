import { describe, expect, it } from "vitest";
import { formatRecord, formatTable, printable } from "./table.ts";

describe("a table", () => {
  it("fits its cells, aligns numbers right and shows absent values as a dash", () => {
    const rows = [
      { name: "a", count: 1_000 },
      { name: "longer", count: null },
    ];
    const table = formatTable(rows, [
      { heading: "name", of: (row) => row.name },
      { heading: "count", of: (row) => row.count, right: true },
    ]);
    expect(table).toBe("NAME    COUNT\na        1000\nlonger      -");
  });

  it("aligns text of wide characters and of combined ones", () => {
    const rows = ["日本語", "e\u0301té", "🎉🎉", "ｱｲｳ", "한국", "plain"].map((name) => ({
      name,
      count: 1,
    }));
    const lines = formatTable(rows, [
      { heading: "name", of: (row) => row.name },
      { heading: "count", of: (row) => row.count, right: true },
    ]).split("\n");
    expect(lines.map((line) => line.replace(/ +(?:COUNT|1)$/, (gap) => `|${gap.length}`))).toEqual([
      ...["NAME|9", "日本語|7", "e\u0301té|10", "🎉🎉|9", "ｱｲｳ|10", "한국|9", "plain|8"],
    ]);
  });

  it("shows control characters instead of sending them to the terminal (S34)", () => {
    expect(printable("a\u001b[2Jb\nc\u202e")).toBe("a\\u{1b}[2Jb\\u{a}c\\u{202e}");
  });

  it("writes a record as names and values", () => {
    expect(formatRecord({ id: "x", scope: { each: "key" }, none: null })).toBe(
      'id     x\nscope  {"each":"key"}\nnone   -',
    );
  });

  it("writes the records in a record after it, each with its own names and values", () => {
    const attempts = [
      { number: 1, gateway: "sim" },
      { number: 2, rules: ["a", "b"] },
    ];
    expect(formatRecord({ attempts, id: "x", corrections: [] })).toBe(
      [
        ...["id           x", "corrections  []", ""],
        ...["attempts 1", "  number   1", "  gateway  sim", ""],
        ...["attempts 2", "  number  2", '  rules   ["a","b"]'],
      ].join("\n"),
    );
  });
});
