import type { Store } from "@tollgate/core/store";
import fc from "fast-check";
import { expect } from "vitest";
import { assistant, type TestMessage, user } from "./chain.ts";
import type { ContractTest } from "./contract-test.ts";
import { createIntents } from "./intents.ts";
import { createResponseBuilder, historyOf, textOfMessages } from "./response-builder.ts";

/** One action on the stored responses. `which` picks any response ever stored, even a removed one. */
type ResponseAction =
  | {
      readonly type: "respond";
      readonly which: number | null;
      readonly count: number;
      readonly life: number;
    }
  | { readonly type: "delete"; readonly which: number }
  | { readonly type: "sweep"; readonly limit: number }
  | { readonly type: "wait"; readonly time: number };

const which = fc.nat(1_000);

const act: fc.Arbitrary<ResponseAction> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("respond"),
      which: fc.option(which, { freq: 5 }),
      count: fc.nat(2),
      life: fc.integer({ min: 1, max: 40 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("delete"), which }) },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant("sweep"), limit: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant("wait"), time: fc.integer({ min: 1, max: 8 }) }),
  },
);

/** Compares histories under random actions with a model that copies the whole history into each response. */
export function responsePropertyTests(test: ContractTest): void {
  test("matches complete copies of histories under random continuations, expiries and deletions", async ({
    store,
  }) => {
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 30 }), async (acts) => {
        const run = createRun(store, `organization-${++runs}`);
        await run.begin();
        for (const one of acts) await run.act(one);
        await run.compare();
      }),
      { numRuns: 60 },
    );
  });
}

interface Copied {
  readonly id: string;
  readonly history: readonly TestMessage[];
  readonly expiresAt: number;
}

function createRun(store: Store, organizationId: string) {
  const intents = createIntents(organizationId);
  const { respond, remove } = createResponseBuilder(store, intents);
  const all: Copied[] = [];
  const standing = new Set<Copied>();
  let at = 0;

  const perform = async (one: ResponseAction): Promise<void> => {
    if (one.type === "wait") at += one.time;
    if (one.type === "respond") await add(one);
    if (one.type === "delete") {
      const chosen = all[one.which % Math.max(1, all.length)];
      if (!chosen) return;
      const there = standing.has(chosen) && chosen.expiresAt > at;
      expect(await remove(chosen.id, at)).toBe(there);
      if (there) standing.delete(chosen);
    }
    if (one.type === "sweep") await sweep(one.limit);
  };
  const add = async ({
    which: place,
    count,
    life,
  }: Extract<ResponseAction, { type: "respond" }>) => {
    const previous = place === null ? null : (all[place % Math.max(1, all.length)] ?? null);
    const inherited = previous?.history ?? [];
    const name = `${all.length}`;
    const messages = [user(`question ${name}`), assistant(`answer ${name}`)].slice(0, count);
    const links = { previousResponseId: previous?.id ?? null, inherited, messages };
    const { id, expiresAt } = await respond({ ...links, expiresAt: at + life });
    const copied = { id, history: [...inherited, ...messages], expiresAt };
    all.push(copied);
    standing.add(copied);
  };
  /** The store may sweep equal expiries in any order, so the model asks which responses remain. */
  const sweep = async (limit: number): Promise<void> => {
    const expired = [...standing].filter(({ expiresAt }) => expiresAt <= at);
    const swept = await store.responses.sweep({ at, limit });
    expect(swept).toBe(Math.min(limit, expired.length));
    const left = new Set<string>();
    for (const one of expired)
      if (await store.responses.get(intents.owner, one.id, 0)) left.add(one.id);
      else standing.delete(one);
    expect(left.size).toBe(expired.length - swept);
  };
  return {
    begin: () => store.keys.insert(intents.key()),
    act: perform,
    async compare() {
      for (const one of all) {
        const there = standing.has(one) && one.expiresAt > at;
        const expected = there ? textOfMessages(one.history) : null;
        expect(await historyOf(store, intents.owner, one.id, at)).toBe(expected);
      }
      // Removes what remains, so the next run sweeps only its own responses.
      await store.responses.sweep({ at: Number.MAX_SAFE_INTEGER, limit: 1_000 });
    },
  };
}
