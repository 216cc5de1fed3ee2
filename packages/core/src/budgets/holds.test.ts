import { describe, expect, it } from "vitest";
import type { BudgetScope, BudgetUnit } from "../domain/budget.ts";
import type { RaisedBudget } from "./budget-cache.ts";
import { holdTemplates, type Spender, withAmounts } from "./holds.ts";
import { rateHold, toRateLimit } from "./rate-limits.ts";

const spender: Spender = {
  organizationId: "acme",
  userId: "ada",
  keyId: "key",
  model: { gateway: "gw", vendor: "acme", model: "one" },
  connection: "platform",
};
const hour = 3_600_000;
const at = 10 * hour + 5;

const budget = (more: Partial<RaisedBudget> = {}): RaisedBudget => ({
  id: "b",
  scope: {},
  unit: "requests",
  limit: 10,
  period: "total",
  mode: "hard",
  warnAt: [],
  raises: [],
  ...more,
});
const raise = (amount: number, until: number) => ({
  id: `raise of ${amount}`,
  budgetId: "b",
  unit: "requests" as const,
  amount,
  at: 0,
  until,
  actor: null,
});
const templates = (...budgets: readonly RaisedBudget[]) =>
  holdTemplates({ budgets, rateLimits: [] }, spender, at);

describe("the holds of a call", () => {
  it.each<[BudgetScope]>([
    [{ organization: "acme" }],
    [{ user: "ada" }],
    [{ key: "key" }],
    [{ gateway: "gw" }],
    [{ connection: "platform" }],
    [{ model: "gw/acme/*" }],
  ])("are on a budget of %j, and not on one of others", (scope) => {
    const [name = ""] = Object.keys(scope);
    const other = name === "connection" ? "customer" : name === "model" ? "gw/b/*" : "another";
    const found = (more: BudgetScope) => templates(budget({ scope: more })).holds.length;
    expect([found(scope), found({ [name]: other })]).toEqual([1, 0]);
    // The other selectors have to match, too.
    expect(found({ organization: "acme", user: "ada", key: "key", [name]: other })).toBe(0);
  });

  it("are in the order of their budgets' ids", () => {
    const { holds } = templates(...["b", "a", "d", "c"].map((id) => budget({ id })));
    expect(holds.map(({ budgetId }) => budgetId)).toEqual(["a", "b", "c", "d"]);
  });

  it("have the limit that raises leave, until the period or a raise ends", () => {
    const raises = [raise(1, at), raise(2, at + 1), raise(4, at + 2)];
    const { from, until, holds } = templates(budget({ raises }));
    expect([from, until, holds[0]?.limit]).toEqual([at, at + 1, 16]);
    const hourly = templates(budget({ period: "hour" }));
    expect([hourly.until, hourly.holds[0]?.periodStart]).toEqual([11 * hour, 10 * hour]);
    expect(templates(budget()).until).toBe(Number.POSITIVE_INFINITY);
    expect(templates().until).toBe(Number.POSITIVE_INFINITY);
  });

  it.each([
    ["gateway", "gw"],
    ["model", "gw/acme/one"],
    ["organization", "acme"],
    ["user", '["acme","ada"]'],
    ["key", "key"],
  ] as const)("of a rate limit for each %s count %j", (each, subject) => {
    const configuration = { limit: { requests: 1 }, per: "second" } as const;
    const rateLimits = [
      toRateLimit({ id: "each", scope: { each }, ...configuration }),
      toRateLimit({ id: "all", ...configuration }),
      toRateLimit({ id: "others", scope: { user: "eve" }, ...configuration }),
    ];
    const { rates } = holdTemplates({ budgets: [], rateLimits }, spender, at);
    expect(rates.map(({ rateLimit, subject }) => [rateLimit.id, subject])).toEqual([
      ["each", subject],
      ["all", ""],
    ]);
  });

  it.each<[BudgetUnit, "hard" | "soft", boolean, boolean]>([
    ["usd", "hard", true, true],
    ["tokens", "hard", false, true],
    ["requests", "hard", false, false],
    ["usd", "soft", false, false],
    ["tokens", "soft", false, false],
  ])("in %s, %s, need a price: %s, and cap the output: %s", (unit, mode, price, output) => {
    const { needsPrice, capsOutput } = templates(budget({ unit, mode }));
    expect([needsPrice, capsOutput]).toEqual([price, output]);
  });

  it("hold the estimates on hard budgets, and only requests on soft ones", () => {
    const amounts = (mode: "hard" | "soft", usd: number | null) => {
      const units = ["usd", "tokens", "requests"] as const;
      const { holds } = templates(...units.map((unit) => budget({ id: unit, unit, mode })));
      const filled = withAmounts(holds, { usd, tokens: 7, requests: 1 });
      return Object.fromEntries(filled.map(({ unit, amount }) => [unit, amount]));
    };
    expect(amounts("hard", 5)).toEqual({ usd: 5, tokens: 7, requests: 1 });
    expect(amounts("hard", null)).toEqual({ usd: 0, tokens: 7, requests: 1 });
    expect(amounts("soft", 5)).toEqual({ usd: 0, tokens: 0, requests: 1 });
  });

  it("keep the amounts on rate limits", () => {
    const steps = toRateLimit({ id: "steps", limit: { concurrentSteps: 3 } });
    const hold = rateHold({ rateLimit: steps, subject: "" }, { requests: 1, tokens: 1 }, at);
    expect(withAmounts([hold], { usd: 2, tokens: 2, requests: 2 })).toEqual([hold]);
  });
});
