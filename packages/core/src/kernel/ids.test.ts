import { describe, expect, it } from "vitest";
import { createRandomIds } from "./ids.ts";

const form = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("random ids", () => {
  const { uuid, bytes } = createRandomIds();

  it("are UUIDs of version 7 that begin with the time in milliseconds", () => {
    const before = Date.now();
    const id = uuid();
    const [, high, low] = form.exec(id) ?? [];
    const at = Number.parseInt(`${high}${low}`, 16);
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(Date.now());
  });

  it("never repeat, and have every digit in every random place", () => {
    const ids = Array.from({ length: 4_000 }, () => uuid());
    expect(new Set(ids).size).toBe(ids.length);
    const digitsAt = (place: number) => new Set(ids.map((id) => id[place])).size;
    const random = [15, 16, 17, 20, 21, 22, ...Array.from({ length: 12 }, (_, at) => 24 + at)];
    expect(random.map(digitsAt)).toEqual(random.map(() => 16));
    expect(digitsAt(19)).toBe(4);
  });

  it("share no byte with the random bytes", () => {
    const given = Array.from({ length: 2_000 }, () => Buffer.from(bytes(32)).toString("hex"));
    expect(new Set(given).size).toBe(given.length);
    expect(given.some((hex) => hex.includes("0000000000"))).toBe(false);
    expect(bytes(20_000)).toHaveLength(20_000);
  });
});
