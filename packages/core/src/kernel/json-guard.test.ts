import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { guardJson, type JsonRules, parseWithDigits } from "./json-guard.ts";

const rules: JsonRules = {
  depth: 64,
  schemaDepth: 32,
  freeForm: new Map([
    ["parameters", "schemaDepth"],
    ["schema", "schemaDepth"],
    ["input", "depth"],
  ]),
  keys: 256,
  values: 200_000,
};

const key = fc
  .string({ unit: "binary" })
  .filter((name) => !["__proto__", "constructor", "prototype"].includes(name));
const { tree: soundJson } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    fc.string({ unit: "binary" }),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !exceeds(value)),
    fc.constantFrom(true, false, null),
    fc.array(tie("tree"), { maxLength: 6 }),
    fc.dictionary(key, tie("tree"), { maxKeys: 20 }),
  ),
}));

/** A float written as an integer beyond 2^53. */
function exceeds(value: number): boolean {
  return /^-?\d+$/.test(JSON.stringify(value)) && !Number.isSafeInteger(value);
}

describe("guardJson", () => {
  it("passes any JSON without faults, however its strings are escaped", () => {
    fc.assert(
      fc.property(soundJson, fc.constantFrom(0, 2), fc.boolean(), (value, indent, escapes) => {
        const plain = JSON.stringify(value, null, indent);
        const text = escapes ? plain.replace(/[^\0-\x7f]/g, escaped) : plain;
        expect(JSON.parse(text)).toEqual(JSON.parse(plain));
        expect(guardJson(text, rules)).toBeNull();
      }),
      { numRuns: 500 },
    );
  });

  it("finds a fault anywhere in otherwise sound JSON", () => {
    const faults = fc.constantFrom(
      ['{"a":1,"b":2,"a":3}', "duplicate-key"],
      ['{"a":1,"\\u0061":3}', "duplicate-key"],
      ['{"__proto__":1}', "forbidden-key"],
      ['{"\\u005f_proto__":1}', "forbidden-key"],
      ['{"constructor":{}}', "forbidden-key"],
      ['{"prototype":{}}', "forbidden-key"],
      ["9007199254740993", "number"],
      ["-9007199254740992", "number"],
      ["1e400", "number"],
      ['"\\ud800"', "surrogate"],
      ['"\\uDC00 \\\\ud83d"', "surrogate"],
      ['{"\\ud83d\\ud83d":1}', "surrogate"],
      ['"\ud800"', "surrogate"],
      [`${"[".repeat(65)}${"]".repeat(65)}`, "depth"],
    );
    fc.assert(
      fc.property(soundJson, soundJson, faults, (before, after, [fault, kind]) => {
        const text = `{"x":[${JSON.stringify(before)},${fault},${JSON.stringify(after)}]}`;
        expect(guardJson(text, rules)?.kind).toBe(kind);
      }),
      { numRuns: 300 },
    );
  });

  it("never throws, and passes no duplicate key, on text that is not JSON", () => {
    const pieces = fc.constantFrom('"', "\\", "{", "}", "[", "]", ",", ":", "1", "-", "\\u", "d8");
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
        expect(() => guardJson(parts.join(""), rules)).not.toThrow();
      }),
      { numRuns: 1_000 },
    );
  });

  it("reports the path of a fault", () => {
    expect(guardJson('{"messages":[{"a":1},{"b":{"c":[0,9007199254740993]}}]}', rules)).toEqual({
      kind: "number",
      path: "messages[1].b.c[1]",
    });
    expect(guardJson('{"a":1,"a":2}', rules)).toEqual({ kind: "duplicate-key", path: "a" });
  });

  it("cuts long keys in a path", () => {
    const long = "k".repeat(1_000);
    expect(guardJson(`{"${long}":1e999}`, rules)?.path).toBe("k".repeat(64));
  });

  it("allows any key in free-form members below the top level, but none twice (S32)", () => {
    expect(guardJson('[{"parameters":{"a":{"__proto__":1,"constructor":2}}}]', rules)).toBeNull();
    const forbidden = '[{"schema":{"prototype":{}},"constructor":1}]';
    expect(guardJson(forbidden, rules)?.kind).toBe("forbidden-key");
    expect(guardJson('{"schema":{"prototype":{}}}', rules)?.kind).toBe("forbidden-key");
    expect(guardJson('[{"schema":{"a":1,"a":1}}]', rules)?.kind).toBe("duplicate-key");
  });

  it("leaves long numbers to free-form members if they can be kept, and only to them", () => {
    const places: number[] = [];
    const noteLongNumber = (start: number, end: number) => places.push(start, end);
    const long = '[{"input":{"a":[9007199254740993,1e400,1.10]}}]';
    expect(guardJson(long, { ...rules, noteLongNumber })).toBeNull();
    const numbers = [long.slice(places[0], places[1]), long.slice(places[2], places[3])];
    expect(numbers).toEqual(["9007199254740993", "1e400"]);
    expect(JSON.stringify(parseWithDigits(long))).toBe(long.replace("1.10", "1.1"));
    expect(guardJson(long, rules)?.kind).toBe("number");
    places.length = 0;
    const alone = '[{"input":-9007199254740993}]';
    expect(guardJson(alone, { ...rules, noteLongNumber })).toBeNull();
    expect(alone.slice(places[0], places[1])).toBe("-9007199254740993");
    const key = '[{"input":{1234567890123456789:1}}]';
    const others = ['{"input":1e400}', '[{"input":0,"other":1e400}]', '[{"input":0},1e400]'];
    for (const outside of ['[{"input":{}},1e400]', '{"input":[1e400]}', key, ...others])
      expect(guardJson(outside, { ...rules, noteLongNumber })?.kind).toBe("number");
  });

  it("limits depth: 64 levels outside and in an input, 32 in a schema (S30)", () => {
    const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
    expect(guardJson(nested(64), rules)).toBeNull();
    expect(guardJson(nested(65), rules)?.kind).toBe("depth");
    expect(guardJson(`[{"schema":${nested(32)}}]`, rules)).toBeNull();
    expect(guardJson(`[{"schema":${nested(33)}}]`, rules)?.kind).toBe("depth");
    expect(guardJson(`[{"schema":${nested(32)},"x":${nested(62)}}]`, rules)).toBeNull();
    expect(guardJson(`[{"input":${nested(64)}}]`, rules)).toBeNull();
    expect(guardJson(`[{"input":${nested(65)}}]`, rules)?.kind).toBe("depth");
  });

  it("limits the members of an object and the values of a text (S31)", () => {
    const members = (count: number): string =>
      `{${Array.from({ length: count }, (_, index) => `"${index}":0`).join(",")}}`;
    expect(guardJson(members(256), rules)).toBeNull();
    expect(guardJson(members(257), rules)?.kind).toBe("keys");
    expect(guardJson("[[[]]]", { ...rules, values: 2 })?.kind).toBe("values");
    expect(guardJson("[{},{}]", { ...rules, values: 4 })).toBeNull();
    expect(guardJson("[{},{},{}]", { ...rules, values: 4 })?.kind).toBe("values");
  });

  it("limits the values but not the members of JSON that a model wrote", () => {
    const table = (member: string): string =>
      `{"calls":[{"${member}":{"a":{${Array.from({ length: 300 }, (_, index) => `"${index}":0`).join(",")}}}}]}`;
    expect(guardJson(table("input"), rules)).toBeNull();
    expect(guardJson(table("input"), { ...rules, values: 299 })?.kind).toBe("values");
    expect(guardJson(table("schema"), rules)?.kind).toBe("keys");
    expect(guardJson(table("other"), rules)?.kind).toBe("keys");
  });

  it("finds a duplicate among many keys", () => {
    const many = Array.from({ length: 100 }, (_, index) => `"${index}":0`).join(",");
    expect(guardJson(`{${many}}`, rules)).toBeNull();
    expect(guardJson(`{${many},"42":1}`, rules)?.kind).toBe("duplicate-key");
  });
});

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
