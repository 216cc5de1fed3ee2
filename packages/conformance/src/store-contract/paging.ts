import { encodeCursor, type Store, type StorePage, type StorePaging } from "@tollgate/core/store";
import { expect } from "vitest";
import { user } from "./chain.ts";
import { sealed } from "./connections.ts";
import { type ContractSubject, type ContractTest, expectOpened } from "./contract-test.ts";
import { createIntents } from "./intents.ts";

/** A list of the store: how to read a page and how to add a row. */
interface List {
  readonly name: string;
  /** Newest first; for evidence, in the order written. */
  readonly newestFirst: boolean;
  page(store: Store, paging: StorePaging): Promise<StorePage<unknown>>;
  add(subject: ContractSubject, at: number): Promise<unknown>;
}

const tenant = { organizationId: "acme" };

const openOne = async ({ store, intents }: ContractSubject, at: number): Promise<void> => {
  const holds = [intents.hold({ budgetId: "paged", mode: "soft", periodStart: at })];
  await expectOpened(store.openStep(intents.step([user(`${at}`)], { holds })));
};

const lists: readonly List[] = [
  {
    name: "keys",
    newestFirst: true,
    page: (store, paging) => store.keys.list(tenant, paging),
    add: ({ store, intents }, at) =>
      store.keys.insert(intents.withOwner({ keyId: `added-${at}` }).key()),
  },
  {
    name: "connections",
    newestFirst: false,
    page: (store, paging) => store.connections.list(tenant, paging),
    add: ({ store, intents }, at) =>
      store.connections.set({
        connection: sealed({ gateway: `own-${String(at).padStart(3, "0")}` }),
        leaf: intents.leaf("connection.set"),
      }),
  },
  {
    name: "Sessions",
    newestFirst: true,
    page: (store, paging) => store.sessions.list(tenant, paging),
    add: openOne,
  },
  {
    name: "Steps",
    newestFirst: true,
    page: (store, paging) => store.steps.list(tenant, paging),
    add: openOne,
  },
  {
    name: "decisions",
    newestFirst: true,
    page: (store, paging) => store.decisions.list(tenant, paging),
    add: ({ store, intents }) => store.recordRefusal(intents.refusal()),
  },
  {
    name: "counters",
    newestFirst: true,
    page: (store, paging) => store.budgets.counters({ budgetId: "paged" }, paging),
    add: openOne,
  },
  {
    name: "evidence",
    newestFirst: false,
    page: (store, paging) => store.evidence.list(tenant, paging),
    add: ({ store, intents }) => store.recordRefusal(intents.refusal()),
  },
];

/** Pages of every list: no row twice and none missing, whatever is written in between. */
export function pagingTests(test: ContractTest): void {
  for (const list of lists) {
    test(`pages of ${list.name} of any size add up to the whole list`, async (subject) => {
      for (let at = 1; at <= 7; at++) await list.add(subject, at);
      const whole = (await list.page(subject.store, { cursor: null, limit: 100 })).data;
      expect(whole.length).toBeGreaterThanOrEqual(7);
      for (const limit of [1, 2, 3, whole.length, whole.length + 1])
        expect(await readAll(list, subject.store, limit)).toEqual(whole);
      const exact = await list.page(subject.store, { cursor: null, limit: whole.length });
      expect(exact.nextCursor).toBeNull();
    });

    test(`pages of ${list.name} stay stable while rows are inserted`, async (subject) => {
      for (let at = 1; at <= 7; at++) await list.add(subject, at);
      const before = (await list.page(subject.store, { cursor: null, limit: 100 })).data;
      let next = 8;
      const read = await readAll(list, subject.store, 2, () => list.add(subject, next++));
      expect(read.slice(0, before.length)).toEqual(before);
      if (list.newestFirst) expect(read).toHaveLength(before.length);
    });

    test(`${list.name} reject a cursor of another list`, async (subject) => {
      for (let at = 1; at <= 2; at++) await openOne(subject, at);
      for (const cursor of await foreignCursors(list, subject.store))
        await expect(list.page(subject.store, { cursor, limit: 2 })).rejects.toMatchObject({
          code: "invalid_argument",
        });
    });
  }

  test("a page passes over no more rows than it may", async (subject) => {
    const { store, intents } = subject;
    const rare = intents.withOwner({ userId: "bob", keyId: "key-2" });
    const foreign = createIntents("globex");
    await store.keys.insert(rare.key());
    await store.keys.insert(foreign.key());
    // Each list has nine rows or more, and the filter selects two of them, or none of a key's seven.
    for (let at = 1; at <= 9; at++) {
      const by = at % 6 === 3 ? rare : intents;
      await store.keys.insert(
        by.withOwner({ keyId: `key of ${at}` }).key({ label: by.owner.userId }),
      );
      await openOne({ store, intents: by }, at);
      await store.recordRefusal(by.refusal());
      const kind = by === rare ? "budget.removed" : "budget.created";
      await store.evidence.record(intents.leaf(kind));
      if (at === 5) await openOne({ store, intents: foreign }, at);
    }
    for (const organizationId of ["acme", null])
      for (const [name, filtered] of Object.entries(filteredLists(organizationId))) {
        const matching = (await filtered(store, { cursor: null, limit: 100 })).data;
        expect(matching, name).toHaveLength(name.endsWith("of a key") ? 0 : 2);
        for (const limit of [1, 2, 100]) {
          const pages = await pagesOf((paging) => filtered(store, { ...paging, limit }));
          expect(pages.flat(), name).toEqual(matching);
          // A page that scans three rows can't reach from one end of the list to the other.
          expect(pages.length, name).toBeGreaterThanOrEqual(3);
        }
      }
  });

  test("pages of all organizations add up to the whole list, and pass over rows of many", async (subject) => {
    const { store } = subject;
    const organizations = Array.from({ length: 12 }, (_, at) =>
      createIntents(`organization-${at}`),
    );
    for (const intents of organizations) await store.keys.insert(intents.key());
    // The first organization has the newest rows, the second has the oldest, and each of the others one or two in between.
    const [newest, oldest, ...others] = organizations;
    if (!newest || !oldest) return expect.fail("There are no organizations.");
    const order = [oldest, oldest, oldest, ...others, ...others.slice(5), ...Array(9).fill(newest)];
    for (const [at, intents] of order.entries())
      await expectOpened(store.openStep({ ...intents.step([user("Hi")]), at }));
    const all = { organizationId: null };
    const whole = (await store.steps.list(all, { cursor: null, limit: 100 })).data;
    const owners = whole.map(({ organizationId }) => organizationId);
    expect(whole).toHaveLength(27);
    expect(owners.slice(0, 9)).toEqual(Array(9).fill("organization-0"));
    expect(owners.slice(-3)).toEqual(Array(3).fill("organization-1"));
    for (const limit of [1, 2, 5, 26, 27]) {
      const pages = await pagesOf((paging) => store.steps.list(all, { ...paging, limit }));
      expect(pages.flat()).toEqual(whole);
      expect(pages).toHaveLength(Math.ceil(whole.length / limit));
    }
    // Ten rows for each page, although there are more organizations.
    const nobody = { ...all, userId: ["nobody"] };
    const pages = await pagesOf((paging) =>
      store.steps.list(nobody, { ...paging, limit: 100, maxScanned: 10 }),
    );
    expect(pages.flat()).toEqual([]);
    expect(pages.length).toBeLessThanOrEqual(3);
  });

  test("returns one empty page for an empty list", async ({ store }) => {
    const empty = { data: [], nextCursor: null };
    const paging = { cursor: null, limit: 5 };
    expect(await store.steps.list(tenant, paging)).toEqual(empty);
    expect(await store.evidence.list({ organizationId: "nobody" }, paging)).toEqual(empty);
    expect(await store.budgets.counters({ budgetId: "none" }, paging)).toEqual(empty);
  });
}

/** Lists of which a filter without an index selects few rows. */
function filteredLists(organizationId: string | null) {
  const of = { organizationId };
  return {
    keys: (store: Store, paging: StorePaging): Promise<StorePage<unknown>> =>
      store.keys.list({ ...of, label: "bob" }, paging),
    sessions: (store: Store, paging: StorePaging) =>
      store.sessions.list({ ...of, userId: "bob" }, paging),
    "sessions of a key": (store: Store, paging: StorePaging) =>
      store.sessions.list({ ...of, userId: "bob", keyId: "key-1" }, paging),
    steps: (store: Store, paging: StorePaging) =>
      store.steps.list({ ...of, userId: ["bob"] }, paging),
    "steps of a key": (store: Store, paging: StorePaging) =>
      store.steps.list({ ...of, userId: ["bob"], keyId: ["key-1"], model: ["echo"] }, paging),
    decisions: (store: Store, paging: StorePaging) =>
      store.decisions.list({ ...of, userId: ["bob"], effect: "deny" }, paging),
    changes: (store: Store, paging: StorePaging) =>
      store.evidence.changes({ ...of, kind: ["budget.removed"] }, paging),
  };
}

/** The pages of a list that may each scan three rows. */
async function pagesOf(
  read: (paging: Omit<StorePaging, "limit">) => Promise<StorePage<unknown>>,
): Promise<readonly (readonly unknown[])[]> {
  const pages: (readonly unknown[])[] = [];
  let cursor: string | null = null;
  do {
    const page: StorePage<unknown> = await read({ cursor, maxScanned: 3 });
    pages.push(page.data);
    cursor = page.nextCursor;
  } while (cursor !== null && pages.length < 99);
  return pages;
}

async function readAll(
  list: List,
  store: Store,
  limit: number,
  between: () => Promise<unknown> = async () => {},
): Promise<readonly unknown[]> {
  const rows: unknown[] = [];
  let cursor: string | null = null;
  // More pages than rows would mean an endless list.
  for (let pages = 0; pages < 30; pages++) {
    const page: StorePage<unknown> = await list.page(store, { cursor, limit });
    expect(page.data.length).toBeLessThanOrEqual(limit);
    rows.push(...page.data);
    cursor = page.nextCursor;
    if (cursor === null || rows.length > 20) break;
    await between();
  }
  return rows;
}

/** Invalid cursors, and a cursor of every other list. */
async function foreignCursors(list: List, store: Store): Promise<readonly string[]> {
  const garbage = [
    "",
    "0",
    "1",
    "null",
    "[]",
    "W10",
    "%00",
    "\u0000",
    "\u{1f600}",
    "a".repeat(9_999),
  ];
  const encoded = [[], ["x"], ["x", 1, ""], [null], { list: "x" }, "' OR 1=1 --"].map((value) =>
    Buffer.from(JSON.stringify(value)).toString("base64url"),
  );
  const own = await firstCursor(list, store);
  const others = lists.filter(({ name }) => name !== list.name);
  const foreign = await Promise.all(others.map((other) => firstCursor(other, store)));
  const broken = own.flatMap((cursor) => [
    ...[`${cursor}x`, cursor.slice(0, -2), `${cursor}=`],
    ...withForgedTie(cursor),
  ]);
  return [...garbage, ...encoded, ...broken, ...foreign.flat()];
}

/** A cursor whose tie is a number, with ties that no row has. None for a cursor of another form. */
function withForgedTie(cursor: string): readonly string[] {
  const [, name, order, tie] =
    /^\["(.+)",(\d+),"(.*)"\]$/.exec(`${Buffer.from(cursor, "base64url")}`) ?? [];
  if (name === undefined || !/^\d+$/.test(tie ?? "")) return [];
  return ["", "x", "1e3", "1.5", "01", " 1", "Infinity", "9007199254740993"].map((forged) =>
    encodeCursor(name, { order: Number(order), tie: forged }),
  );
}

/** The cursor after a list's first row. None for a list of one row. */
async function firstCursor(list: List, store: Store): Promise<readonly string[]> {
  const { nextCursor } = await list.page(store, { cursor: null, limit: 1 });
  return nextCursor === null ? [] : [nextCursor];
}
