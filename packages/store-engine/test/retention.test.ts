import fc from "fast-check";
import { expect, it } from "vitest";
import {
  type Change,
  keptExpiry,
  type ResponseView,
  type RowName,
  type ViewedResponse,
} from "../src/model.ts";
import { deleteResponse, sweepResponses } from "../src/retention.ts";
import { leafOf, owner } from "./step-intents.ts";

const at = 1_000;
const { organizationId } = owner;

/** Stored responses, each built on another one or on none. */
function createResponses() {
  const rows = new Map<string, ViewedResponse>();
  const view: ResponseView = {
    response: (_, id) => rows.get(id) ?? null,
    continuations: (_, id, limit) =>
      [...rows].flatMap(([other, { builtOn }]) => (builtOn === id ? [other] : [])).slice(0, limit),
    expiredResponses: (now, limit) =>
      [...rows]
        .filter(([, { expiresAt }]) => expiresAt > keptExpiry && expiresAt <= now)
        .slice(0, limit)
        .map(([id, { builtOn }]) => ({ organizationId, id, builtOn })),
    expiredClaims: () => [],
  };
  const apply = (change: Change): Change => {
    for (const { write, row } of change)
      if (write === "remove response") rows.delete(row.id);
      else if (write === "hide response") {
        const { id, expiresAt }: RowName & Pick<ViewedResponse, "expiresAt"> = row;
        const hidden = rows.get(id);
        if (hidden) rows.set(id, { ...hidden, expiresAt });
      }
    return change;
  };
  return {
    add(id: string, builtOn: string | null, expiresAt = 2_000, keptBytes = 2) {
      const response = { ...owner, stepId: id, expiresAt, builtOn, keptBytes };
      rows.set(id, { ...response, idempotencyKeySha256: null });
    },
    remove: (id: string) =>
      apply(deleteResponse(view, { owner, id, at, leaf: leafOf("response.deleted", id) }).change),
    sweep: (now = at, limit = 100) => apply(sweepResponses(view, { at: now, limit }).change),
    ids: () => [...rows.keys()],
  };
}

it("removes a response in one step, however many others are built on it", () => {
  const { add, remove, ids } = createResponses();
  add("root", null);
  for (let number = 0; number < 1_000; number++) add(`continuation ${number}`, "root");
  expect(remove("root").map(({ write }) => write)).toEqual(["hide response", "insert leaf"]);
  expect(remove("root")).toEqual([]);
  for (let number = 0; number < 1_000; number++) {
    expect(ids()).toContain("root");
    remove(`continuation ${number}`);
  }
  expect(ids()).toEqual([]);
});

it("removes the responses that were kept for a long chain, a bounded number at a time", () => {
  const { add, remove, sweep, ids } = createResponses();
  for (let place = 0; place < 100; place++) add(`${place}`, place === 0 ? null : `${place - 1}`);
  for (let place = 0; place < 99; place++) remove(`${place}`);
  expect(ids()).toHaveLength(100);
  const writes = remove("99").map(({ write }) => write);
  expect(writes.filter((write) => write === "remove response")).toHaveLength(33);
  const left: number[] = [];
  while (ids().length > 0) {
    left.push(ids().length);
    sweep();
  }
  expect(left).toEqual([67, 34, 1]);
});

it("removes a response between two that expire together", () => {
  const { add, remove, sweep, ids } = createResponses();
  add("a", null);
  add("b", "a", 5_000);
  add("c", "b");
  remove("b");
  expect(ids()).toEqual(["a", "b", "c"]);
  sweep(2_000);
  expect(ids()).toEqual([]);
});

it("keeps no removed response that nothing is built on, whatever was removed in which order", () => {
  const response = fc.record({
    builtOn: fc.option(fc.nat(40)),
    expiresAt: fc.integer({ min: at + 1, max: at + 5 }),
    isDeleted: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(response, { maxLength: 40 }), fc.constantFrom(1, 3, 100), (all, limit) => {
      const { add, remove, sweep, ids } = createResponses();
      for (const [place, { builtOn, expiresAt }] of all.entries())
        add(`${place}`, builtOn === null || place === 0 ? null : `${builtOn % place}`, expiresAt);
      for (const [place, { isDeleted }] of all.entries()) if (isDeleted) remove(`${place}`);
      for (let now = at + 1; now <= at + 5; now++) while (sweep(now, limit).length > 0);
      expect(ids()).toEqual([]);
    }),
  );
});

it("removes at most 32 kept responses in a change, whichever named ones they were kept for", () => {
  const { add, remove, sweep } = createResponses();
  for (let chain = 0; chain < 10; chain++)
    for (let place = 0; place < 20; place++)
      add(`${chain} ${place}`, place === 0 ? null : `${chain} ${place - 1}`, 3_000);
  for (let chain = 0; chain < 10; chain++)
    for (let place = 0; place < 19; place++) remove(`${chain} ${place}`);
  const writes = sweep(3_000).map(({ write }) => write);
  expect(writes.filter((write) => write === "remove response")).toHaveLength(10 + 32);
  expect(writes.length).toBeLessThanOrEqual(10 + 32 + 10);
});

it("removes at most 1 MiB of kept responses in a change, and a larger one alone", () => {
  const { add, remove, sweep, ids } = createResponses();
  const sizes = [400_000, 3_000_000, 400_000, 400_000, 400_000, 10];
  for (const [place, size] of sizes.entries())
    add(`${place}`, place === 0 ? null : `${place - 1}`, 5_000, size);
  for (const place of sizes.keys()) remove(`${place}`);
  const left = [ids()];
  while (sweep().length > 0) left.push(ids());
  expect(left).toEqual([["0", "1", "2"], ["0", "1"], []]);
});

it("removes no response that was not removed, whatever its expiry", () => {
  const { add, remove, ids } = createResponses();
  add("a", null, 1);
  add("b", "a");
  remove("b");
  expect(ids()).toEqual(["a"]);
});
