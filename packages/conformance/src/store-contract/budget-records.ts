import { type Budget, type BudgetRaise, GatewayError } from "@tollgate/core/store";
import { expect } from "vitest";
import { countersOf } from "./budgets.ts";
import { user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";

const budget: Budget = {
  id: "team",
  scope: {
    organization: "acme",
    user: ["ada", "bob"],
    gateway: "sim",
    connection: "customer",
    model: ["sim/*/*"],
    each: "user",
  },
  unit: "usd",
  limit: 9_007_199_254_740_991,
  period: "month",
  mode: "hard",
  warnAt: [0.25, 1],
};

const raise: BudgetRaise = {
  id: "raise-1",
  budgetId: "team",
  unit: "usd",
  amount: 1,
  at: 0,
  until: 1,
  actor: null,
};

/** Budgets created at run time, and the version that changes with them. */
export function budgetRecordTests(test: ContractTest): void {
  test("creates a budget once, replaces it, removes it, and reads it back complete", async ({
    store,
    intents,
  }) => {
    expect(await store.budgets.insert(budget, intents.leaf("budget.created"))).toBe(true);
    expect(await store.budgets.insert(budget, intents.leaf("budget.created"))).toBe(false);
    expect(await store.budgets.list()).toEqual([budget]);
    const changed: Budget = {
      ...budget,
      scope: { key: "key-1" },
      limit: 0,
      mode: "soft",
      warnAt: [],
    };
    expect(await store.budgets.update(changed, intents.leaf("budget.updated"))).toBe(true);
    expect(await store.budgets.list()).toEqual([changed]);
    expect(await store.budgets.remove("team", intents.leaf("budget.removed"))).toBe(true);
    expect(await store.budgets.list()).toEqual([]);
    const leaves = await store.evidence.list(
      { organizationId: "acme" },
      { cursor: null, limit: 9 },
    );
    expect(leaves.data.map(({ kind }) => kind)).toEqual([
      "key.created",
      "budget.created",
      "budget.updated",
      "budget.removed",
    ]);
  });

  test("does not change or remove a budget that doesn't exist", async ({ store, intents }) => {
    const version = await store.budgets.version();
    expect(await store.budgets.update(budget, intents.leaf("budget.updated"))).toBe(false);
    expect(await store.budgets.remove("team", intents.leaf("budget.removed"))).toBe(false);
    expect(await store.budgets.version()).toBe(version);
    expect(await store.budgets.list()).toEqual([]);
  });

  test("rejects holds computed from outdated budgets", async ({ store, intents }) => {
    const changes = [
      () => store.budgets.insert(budget, intents.leaf("budget.created")),
      () => store.budgets.update(budget, intents.leaf("budget.updated")),
      () => store.budgets.insertRaise(raise, intents.leaf("budget.raised"), 100),
      () => store.budgets.removeRaise(raise, intents.leaf("budget.raise_cancelled")),
      () => store.budgets.remove("team", intents.leaf("budget.removed")),
    ];
    for (const change of changes) {
      const budgetsVersion = await store.budgets.version();
      await expectOpened(store.openStep(intents.step([user("a")], { budgetsVersion })));
      await change();
      expect(await store.openStep(intents.step([user("b")], { budgetsVersion }))).toEqual({
        opened: false,
        refusal: { code: "budgets_changed" },
      });
      expect(await store.budgets.version()).toBeGreaterThan(budgetsVersion);
    }
  });

  test("adds up the raises of a budget, and ends and removes them with it", async ({
    store,
    intents,
  }) => {
    const raise = (overrides: Partial<BudgetRaise>): BudgetRaise => ({
      id: intents.id(),
      budgetId: "declared",
      unit: "usd",
      amount: 9_007_199_254_740_991,
      at: 1_000,
      until: 2_000,
      actor: "ops",
      ...overrides,
    });
    const leaf = () => intents.leaf("budget.raised");
    const [first, second, other] = [raise({}), raise({ actor: null }), raise({ budgetId: "team" })];
    await store.budgets.insert(budget, intents.leaf("budget.created"));
    for (const one of [first, second, other])
      expect(await store.budgets.insertRaise(one, leaf(), 100)).toBe(true);
    expect(await store.budgets.insertRaise(first, leaf(), 100)).toBe(false);
    expect(await store.budgets.raises()).toEqual([first, second, other]);

    const cancelled = intents.leaf("budget.raise_cancelled");
    expect(await store.budgets.removeRaise(first, cancelled)).toBe(true);
    expect(await store.budgets.removeRaise(first, cancelled)).toBe(false);
    expect(await store.budgets.removeRaise({ ...other, budgetId: "b" }, cancelled)).toBe(false);
    expect(await store.budgets.raises()).toEqual([second, other]);

    const later = raise({ at: 2_000, until: 3_000 });
    await store.budgets.insertRaise(later, leaf(), 100);
    expect(await store.budgets.raises()).toEqual([other, later]);
    expect(await store.budgets.remove("none", intents.leaf("budget.removed"))).toBe(false);
    expect(await store.budgets.raises()).toEqual([other, later]);
    await store.budgets.remove("team", intents.leaf("budget.removed"));
    expect(await store.budgets.raises()).toEqual([later]);
  });

  test("shows the budget to the check of a raise, and changes nothing if it refuses", async ({
    store,
    intents,
  }) => {
    await store.budgets.insert(budget, intents.leaf("budget.created"));
    const seen: Budget[] = [];
    const refuse = (before: Budget): never => {
      seen.push(before);
      throw new GatewayError("precondition_failed", "It has changed.");
    };
    const refused = { code: "precondition_failed" };
    const leaf = () => intents.leaf("budget.raised");
    const version = await store.budgets.version();
    await expect(store.budgets.insertRaise(raise, leaf(), 100, refuse)).rejects.toMatchObject(
      refused,
    );
    expect([await store.budgets.raises(), await store.budgets.version()]).toEqual([[], version]);
    const declared = { ...raise, budgetId: "declared" };
    for (const raised of [raise, declared])
      expect(await store.budgets.insertRaise(raised, leaf(), 100)).toBe(true);
    const reference = { budgetId: "team", id: raise.id };
    await expect(store.budgets.removeRaise(reference, leaf(), refuse)).rejects.toMatchObject(
      refused,
    );
    expect(await store.budgets.raises()).toEqual([raise, declared]);
    expect(await store.budgets.removeRaise(declared, leaf(), refuse)).toBe(true);
    expect(seen).toEqual([budget, budget]);
  });

  test("starts a budget without the raises of an earlier budget with the same id", async ({
    store,
    intents,
  }) => {
    const other = { ...raise, budgetId: "other" };
    for (const left of [raise, other])
      await store.budgets.insertRaise(left, intents.leaf("budget.raised"), 100);
    await store.budgets.insert(budget, intents.leaf("budget.created"));
    expect(await store.budgets.raises()).toEqual([other]);
    await store.budgets.insertRaise(raise, intents.leaf("budget.raised"), 100);
    expect(await store.budgets.insert(budget, intents.leaf("budget.created"))).toBe(false);
    expect(await store.budgets.raises()).toEqual([other, raise]);
  });

  test("never exceeds the maximum number of raises, even if many arrive at once", async ({
    store,
    intents,
  }) => {
    const raising = (overrides: Partial<BudgetRaise>): Promise<boolean> =>
      store.budgets.insertRaise(
        { ...raise, id: intents.id(), until: 2_000, ...overrides },
        intents.leaf("budget.raised"),
        3,
      );
    await raising({ budgetId: "other" });
    await raising({ until: 1_000 });
    const raises = await Promise.all(Array.from({ length: 12 }, () => raising({ at: 1_000 })));
    expect(raises.filter((isDone) => isDone)).toHaveLength(3);
    const version = await store.budgets.version();
    expect(await raising({ at: 1_999 })).toBe(false);
    expect(await store.budgets.version()).toBe(version);
    expect(await store.budgets.raises()).toHaveLength(4);
    expect(await raising({ at: 2_000, until: 3_000 })).toBe(true);
    const page = await store.evidence.list({ organizationId: "acme" }, { cursor: null, limit: 99 });
    expect(page.data.filter(({ kind }) => kind === "budget.raised")).toHaveLength(6);
  });

  test("keeps a budget's counters when it is changed or removed", async ({ store, intents }) => {
    await store.budgets.insert(budget, intents.leaf("budget.created"));
    const budgetsVersion = await store.budgets.version();
    const holds = [intents.hold({ budgetId: "team" })];
    const step = intents.step([user("a")], { holds, budgetsVersion });
    await expectOpened(store.openStep(step));
    await store.budgets.update({ ...budget, limit: 1 }, intents.leaf("budget.updated"));
    expect(await countersOf(store, "team")).toMatchObject([{ settled: 0, held: 100 }]);
    await store.budgets.remove("team", intents.leaf("budget.removed"));
    await store.settleStep(intents.settlement(step));
    expect(await countersOf(store, "team")).toMatchObject([{ settled: 60, held: 0 }]);
  });
}
