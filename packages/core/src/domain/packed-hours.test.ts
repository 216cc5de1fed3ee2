import fc from "fast-check";
import { expect, it } from "vitest";
import { type FoldedSteps, packSteps } from "./packed-hours.ts";
import { foldedIn } from "./usage-hours.ts";

const hour = Date.UTC(2026, 0, 5, 10);
const row = { organizationId: "acme", detail: "callers", hour, id: "row" } as const;
const name = fc.constantFrom("", "ada", "bob", "ключ", '"\u0000');
const amount = fc.oneof(
  fc.maxSafeInteger().filter((value) => value !== 0),
  fc.constantFrom(1, -1, 127, 128, -128, 16_384, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER),
);
const place = fc.record({
  gateway: name,
  vendor: name,
  model: name,
  connection: fc.constantFrom("platform", "customer"),
  figures: fc
    .dictionary(fc.integer({ min: 0, max: 57 }).map(String), amount)
    .map((sums) => Object.entries(sums).flatMap(([at, value]) => [Number(at), value])),
});
const steps: fc.Arbitrary<FoldedSteps> = fc.record({
  organizationId: fc.constant("acme"),
  userId: name,
  keyId: name,
  keyLabel: name,
  source: name,
  dataClass: name,
  outcome: fc.constantFrom("completed", "failed", "cancelled"),
  openedAt: fc.integer({ min: hour, max: hour + 3_599_999 }),
  count: fc.integer({ min: -3, max: 100_000 }),
  places: fc.array(place, { maxLength: 3 }),
});

it("gives the groups of an hour back as they were packed", () => {
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 6 }), (folded) => {
      expect(foldedIn({ ...row, ...packSteps(hour, folded) })).toEqual(folded);
    }),
  );
});

it("writes the same names for the same callers and places, in whatever order they came", () => {
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 6 }), (folded) => {
      expect(packSteps(hour, folded.toReversed()).names).toBe(packSteps(hour, folded).names);
    }),
  );
});

it("refuses damaged sums", () => {
  const packed = { ...row, ...packSteps(hour, fc.sample(steps, { numRuns: 5, seed: 1 })) };
  const { figures } = packed;
  for (const [damage, names] of [
    [figures.subarray(0, -1), packed.names],
    [figures, "[[],[]]"],
  ] as const)
    expect(() => foldedIn({ ...packed, figures: damage, names })).toThrow(
      "hourly sums are damaged",
    );
});
