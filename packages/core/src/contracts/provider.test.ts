import { describe, expect, it } from "vitest";
import { createArgumentsReader, retryAfterMs } from "./provider.ts";

const now = Date.UTC(2026, 0, 1);
const after = (value: string): number | null => retryAfterMs({ "retry-after": value }, now);

describe("the wait that an upstream asks for (F15)", () => {
  it("is read from seconds, dates and milliseconds", () => {
    expect(after("7")).toBe(7_000);
    expect(after("0")).toBe(0);
    expect(after("0.5")).toBe(500);
    expect(after(new Date(now + 90_000).toUTCString())).toBe(90_000);
    expect(after(new Date(now - 90_000).toUTCString())).toBe(0);
    expect(retryAfterMs({ "retry-after-ms": "250", "retry-after": "7" }, now)).toBe(250);
    expect(retryAfterMs({ "retry-after-ms": "soon", "retry-after": "7" }, now)).toBe(7_000);
  });

  it("is null for invalid values", () => {
    for (const garbage of [
      "",
      "-1",
      "soon",
      "1e3",
      "9".repeat(400),
      "Xyz, nonsense, not a date GMT",
    ])
      expect(after(garbage)).toBeNull();
    expect(retryAfterMs({}, now)).toBeNull();
    expect(retryAfterMs({ "retry-after": ["1", "2"] }, now)).toBeNull();
  });

  it("is at most an hour", () => {
    expect(after("315360000")).toBe(3_600_000);
    expect(after(new Date(now + 315_360_000_000).toUTCString())).toBe(3_600_000);
  });
});

describe("the arguments of a request's tool calls", () => {
  it("are read as values, or not at all if they aren't JSON", () => {
    const read = createArgumentsReader();
    expect(read('{"city":"Zürich"}')).toEqual({ city: "Zürich" });
    expect(read("null")).toBeNull();
    expect(read("{")).toBeUndefined();
  });

  it("keep all digits of their numbers", () => {
    const read = createArgumentsReader();
    const text = '{"id":12345678901234567890,"list":[-9007199254740993],"x":1.5}';
    expect(JSON.stringify(read(text))).toBe(text);
    expect(read('{"id":9007199254740991}')).toEqual({ id: 9_007_199_254_740_991 });
    expect(read('{"id":12345678901234567890')).toBeUndefined();
    // As a value it would look like an object.
    expect(read("-12345678901234567890")).toBeUndefined();
    expect(read("5")).toBe(5);
  });

  it("are read up to 1,000 levels deep, which JSON.stringify can write", () => {
    const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
    expect(JSON.stringify(createArgumentsReader()(nested(1_000)))).toBe(nested(1_000));
    expect(createArgumentsReader()(nested(1_001))).toBeUndefined();
  });

  it("are read up to 100,000 values together", () => {
    const read = createArgumentsReader();
    const many = JSON.stringify(Array.from({ length: 60_000 }, () => 1));
    expect(read(many)).toHaveLength(60_000);
    expect(read(many)).toBeUndefined();
    expect(read("[1]")).toEqual([1]);
    const digits = (count: number): string => `[${"12345678901234567890,".repeat(count)}1]`;
    expect(createArgumentsReader()(digits(26_000))).toBeUndefined();
    expect(createArgumentsReader()(digits(24_000))).toHaveLength(24_001);
    const fraction = `[${"0.30000000000000004,".repeat(90_000)}1]`;
    expect(createArgumentsReader()(fraction)).toHaveLength(90_001);
    expect(read("[".repeat(100_001) + "]".repeat(100_001))).toBeUndefined();
  });
});
