import { expect, it } from "vitest";
import { createSlots, SlotShare } from "./slots.ts";

it("slots are limited in total and per owner", () => {
  const slots = createSlots({ max: 3, maxPerOwner: 2 });
  expect(["a", "a", "a", "b", "b"].map((owner) => slots.take(owner))).toEqual([
    true,
    true,
    false,
    true,
    false,
  ]);
  slots.release("a");
  expect([slots.taken(), slots.take("b"), slots.take("b")]).toEqual([2, true, false]);
});

it("an owner without slots releases none", () => {
  const slots = createSlots({ max: 3, maxPerOwner: 2 });
  slots.take("a");
  slots.release("b");
  expect(slots.taken()).toBe(1);
  slots.release("a");
  slots.release("a");
  expect(slots.taken()).toBe(0);
  expect([slots.take("a", 2), slots.take("a", 0), slots.take("a")]).toEqual([true, true, false]);
});

it("an owner that releases some of its slots keeps the others", () => {
  const slots = createSlots({ max: 9, maxPerOwner: 3 });
  slots.take("a", 3);
  slots.release("a", 2);
  expect([slots.take("a", 3), slots.take("a", 2), slots.take("a")]).toEqual([false, true, false]);
  slots.release("a", 3);
  expect([slots.taken(), slots.take("a", 3)]).toEqual([0, true]);
});

it("a share grows while there are slots, and releases all of them once", () => {
  const slots = createSlots({ max: 5, maxPerOwner: 4 });
  const share = new SlotShare(slots, "a");
  expect([share.grow(3), share.grow(2), share.grow(1)]).toEqual([true, false, true]);
  expect(slots.taken()).toBe(4);
  slots.take("a", 0);
  share.release();
  share.release();
  expect(slots.taken()).toBe(0);
});
