import type { BudgetConfiguration, GatewayOptions } from "@tollgate/core";
import { warningsOf } from "@tollgate/core/check";
import {
  definePolicy,
  forbid,
  type PolicyFacts,
  permit,
  type Rule,
  type RuleMatch,
} from "@tollgate/core/policy";
import type { Provider } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import { scriptedProvider } from "@tollgate/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const priced = { input: 1, output: 2 };

function providerOf(options: Partial<Pick<Provider, "models" | "open" | "connection">>): Provider {
  return { ...scriptedProvider(), models: {}, open: true, vendor: null, ...options };
}

/** A gateway with two models, one that is open to others, and a customer-owned one. */
const providers = {
  closed: providerOf({ models: { "acme/one": priced, "acme/two": priced }, open: false }),
  open: providerOf({ models: { "acme/one": priced } }),
  own: providerOf({ connection: "customer" }),
};

function warnings(options: Omit<GatewayOptions, "store" | "providers"> & Partial<GatewayOptions>) {
  return warningsOf({ store: memoryStore(), providers, ...options }).map(({ message }) => message);
}

const ofRules = (...rules: readonly Rule[]) => warnings({ policy: definePolicy({ rules }) });

describe("rules without effect", () => {
  it.each<[string, Rule, string]>([
    [
      "an unknown gateway",
      permit("a", { model: "clsed/*/*" }),
      "`policy.rules[0].match.model` names an unknown gateway: clsed/*/*.",
    ],
    [
      "a model that is misspelt",
      permit("a", { model: "closed/acme/tow" }),
      "`policy.rules[0].match.model` matches no model of any gateway: closed/acme/tow.",
    ],
    [
      "one pattern of several",
      permit("a", { model: ["closed/acme/*", "closed/acne/*"] }),
      "`policy.rules[0].match.model` matches no model of any gateway: closed/acne/*.",
    ],
    [
      "a forbid of a misspelt model",
      forbid("a", { model: "closed/acme/tow" }),
      "`policy.rules[0].match.model` matches no model of any gateway: closed/acme/tow.",
    ],
    [
      "a forbid of an unknown gateway",
      forbid("a", { model: "clsed/*/*" }),
      "`policy.rules[0].match.model` names an unknown gateway: clsed/*/*.",
    ],
    [
      "a gateway that doesn't have the model",
      permit("a", { gateway: "open", model: "closed/acme/*" }),
      "`policy.rules[0].match.model` matches no model of any gateway: closed/acme/*.",
    ],
    [
      "an account that the gateway doesn't have",
      permit("a", { gateway: "closed", connection: "customer" }),
      "`policy.rules[0].match` matches no model of any gateway.",
    ],
    [
      "unlisted models of a closed gateway",
      permit("a", { gateway: "closed", listed: false }),
      "`policy.rules[0].match` matches no model of any gateway.",
    ],
    [
      "data classes in the wrong order",
      permit("a", { from: "D3_RESTRICTED", upTo: "D0_PUBLIC" }),
      "`policy.rules[0].match` matches no data class.",
    ],
    [
      "an account that no gateway demands",
      permit("a", { gateway: "closed" }, { connection: "customer" }),
      "`policy.rules[0].options.connection` refuses every call: no gateway that the rule matches is customer-owned.",
    ],
    [
      "a fallback that nothing permits",
      permit("a", { gateway: "closed" }, { fallbacks: ["open/acme/one"] }),
      "`policy.rules[0].options.fallbacks[0]` is never tried: the policy never permits open/acme/one.",
    ],
  ])("are reported: %s", (_, rule, message) => {
    expect(ofRules(rule)).toEqual([message]);
  });

  it.each<[string, readonly Rule[]]>([
    ["a forbid of future models", [permit("a"), forbid("b", { model: "*/*/*-preview" })]],
    ["another case", [permit("a", { model: "CLOSED/Acme/ONE" })]],
    ["unlisted models of an open gateway", [permit("a", { model: "open/other/thing" })]],
    ["a listed model of an open gateway", [permit("a", { gateway: "open", listed: true })]],
    [
      "a forbid of some callers",
      [permit("a", { model: "closed/acme/one" }), forbid("b", { gateway: "closed", user: "eve" })],
    ],
    [
      "a forbid of some classes",
      [
        permit("a", { gateway: "closed" }),
        forbid("b", { gateway: "closed", from: "D2_CONFIDENTIAL" }),
      ],
    ],
    [
      "a forbid of some models",
      [permit("a", { gateway: "open" }), forbid("b", { gateway: "open", listed: true })],
    ],
    [
      "a forbid of continued Sessions",
      [permit("a"), forbid("b", { session: { from: "D0_PUBLIC" } })],
    ],
    [
      "a fallback to a model that is permitted",
      [permit("a", {}, { fallbacks: ["open/acme/one"] })],
    ],
    ["an account that some gateway has", [permit("a", {}, { connection: "customer" })]],
  ])("aren't seen in %s", (_, rules) => {
    expect(ofRules(...rules)).toEqual([]);
  });

  it.each<[string, RuleMatch, RuleMatch]>([
    ["everything", { gateway: "open", tools: true }, {}],
    ["its gateway", { model: "closed/acme/*" }, { gateway: "closed" }],
    ["all models of a closed gateway", { gateway: "closed" }, { model: ["*/*/one", "*/*/TWO"] }],
    ["a wider pattern", { model: "open/a*/gpt-5*" }, { model: "*/*/gpt-*" }],
    ["its account", { gateway: "own", upTo: "D1_INTERNAL" }, { connection: "customer" }],
    ["its classes", { gateway: "open", from: "D2_CONFIDENTIAL" }, { from: "D1_INTERNAL" }],
    ["its users and more", { user: "eve" }, { user: ["eve", "mallory"] }],
    ["its tier by another name", { serviceTier: "auto" }, { serviceTier: ["default", "flex"] }],
  ])("are reported where a forbid matches %s", (_, narrow, wide) => {
    expect(ofRules(permit("b"), forbid("a", wide), permit("narrow", narrow))).toContain(
      "`policy.rules[2]` never permits a call: rule a forbids every call that it matches.",
    );
  });

  it("are fallbacks of a permit that comes after another with fallbacks", () => {
    const fallbacks = ["open/acme/one"] as const;
    const later = permit("later", { user: "ada" }, { fallbacks });
    expect(ofRules(permit("all"), permit("first", {}, { fallbacks }), later)).toEqual([
      "`policy.rules[2].options.fallbacks` are never used: the fallbacks of rule first come first.",
    ]);
    expect(ofRules(permit("all"), later, permit("last", {}, { fallbacks }))).toEqual([]);
  });

  it("can't be seen in a function", () => {
    const policy = definePolicy({ version: "1", decide: () => ({ effect: "permit", rules: [] }) });
    expect(warnings({ policy })).toEqual([]);
  });
});

describe("budgets and prices without effect", () => {
  const budget = (fields: Partial<BudgetConfiguration>): BudgetConfiguration => ({
    id: "b",
    limit: { usd: 1 },
    period: "day",
    mode: "soft",
    ...fields,
  });
  const ofBudget = (fields: Partial<BudgetConfiguration>, options: Partial<GatewayOptions> = {}) =>
    warnings({ budgets: [budget(fields)], ...options });

  it("are budgets that count nothing", () => {
    expect(ofBudget({ scope: { model: "opn/*/*" } })).toEqual([
      "`budgets[0].scope.model` names an unknown gateway: opn/*/*.",
    ]);
    expect(ofBudget({ scope: { gateway: "closed", connection: "customer" } })).toEqual([
      "`budgets[0].scope` matches no model of any gateway.",
    ]);
    expect(ofBudget({ scope: { gateway: "open", organization: "acme" } })).toEqual([]);
  });

  it("are rate limits that count nothing", () => {
    const rateLimit = { id: "r", limit: { concurrentSteps: 1 } } as const;
    const ofRateLimit = (model: string) =>
      warnings({ rateLimits: [{ ...rateLimit, scope: { model } }] });
    expect(ofRateLimit("opn/*/*")).toEqual([
      "`rateLimits[0].scope.model` names an unknown gateway: opn/*/*.",
    ]);
    expect(ofRateLimit("open/*/*")).toEqual([]);
  });

  it("are prices of models that no gateway has", () => {
    const prices = {
      "opn/acme/one": priced,
      "closed/acme/tow": priced,
      "CLOSED/acme/TWO": priced,
      "open/other/one": priced,
    };
    expect(warnings({ prices })).toEqual([
      '`prices["opn/acme/one"]` names an unknown gateway.',
      '`prices["closed/acme/tow"]` is a price for a model that its gateway doesn\'t have.',
    ]);
  });

  const unpriced = {
    closed: providerOf({ models: { "acme/one": priced, "acme/two": {} }, open: false }),
    open: providerOf({}),
  };
  const book = {
    priceOf: () => null,
    factsOf: () => ({ maxOutputTokens: null, reasons: null }),
  };
  const ofModel =
    '`providers.closed.models["acme/two"]` has no price, so Tollgate refuses its calls that count against budget b.';
  const ofGateway =
    "`providers.open` has no prices for models that it doesn't list, so Tollgate refuses calls to them that count against budget b.";

  it("are models without a price under a hard budget in dollars", () => {
    const hard = { mode: "hard" } as const;
    expect(ofBudget(hard, { providers: unpriced })).toEqual([ofModel, ofGateway]);
    expect(ofBudget(hard, { providers: unpriced, prices: book })).toEqual([ofModel]);
    const prices = { "closed/acme/two": priced, "open/some/model": priced };
    expect(ofBudget(hard, { providers: unpriced, prices })).toEqual([]);
    expect(ofBudget({}, { providers: unpriced })).toEqual([]);
    expect(ofBudget({ ...hard, limit: { tokens: 1 } }, { providers: unpriced })).toEqual([]);
    const scope = { model: "*/*/one" };
    expect(ofBudget({ ...hard, scope }, { providers: unpriced })).toEqual([]);
  });

  it("are aliases of such models", () => {
    const aliases = { "gpt-5": "open/x/y" };
    const options = { providers: unpriced, prices: book, aliases };
    expect(ofBudget({ mode: "hard", scope: { model: "open/*/*" } }, options)).toEqual([
      "`aliases.gpt-5` has no price, so Tollgate refuses its calls that count against budget b.",
    ]);
  });

  it("are permits and fallbacks of such models, and not models that the policy never permits", () => {
    const of = (...rules: readonly Rule[]) =>
      ofBudget(
        { mode: "hard", scope: { user: "ada" } },
        { providers: unpriced, prices: book, policy: definePolicy({ rules }) },
      );
    const reason = "has no price, so Tollgate refuses its calls that count against budget b.";
    expect(
      of(
        permit("a", { model: "closed/acme/one" }, { fallbacks: ["open/x/y"] }),
        permit("b", { model: "open/x/y" }),
      ),
    ).toEqual([
      `\`policy.rules[0].options.fallbacks[0]\` ${reason}`,
      `\`policy.rules[1].match.model\` ${reason}`,
    ]);
    expect(of(permit("a", { model: "closed/acme/one" }))).toEqual([]);
    expect(of(permit("a"), forbid("b", { model: "closed/*/two" }))).toEqual([]);
  });

  it("are obligations to a tier without a price", () => {
    const models = { "acme/one": { ...priced, tiers: { flex: priced } }, "acme/two": priced };
    const closed = providerOf({ models, open: false });
    const of = (...rules: readonly Rule[]) =>
      ofBudget({ mode: "hard" }, { providers: { closed }, policy: definePolicy({ rules }) });
    const reason =
      "has no price on any model that the rule matches, so Tollgate refuses calls that count against budget b.";
    expect(of(permit("a", {}, { serviceTier: "flexx" }))).toEqual([
      `\`policy.rules[0].options.serviceTier\` ${reason}`,
    ]);
    expect(of(permit("a", {}, { serviceTier: "flex" }))).toEqual([]);
    expect(of(permit("a", {}, { serviceTier: "standard" }))).toEqual([]);
    const others = [
      permit("a", {}, { serviceTier: "flexx" }),
      permit("b", {}, { serviceTier: "flex" }),
    ];
    expect(of(...others)).toEqual([]);
  });

  it("aren't seen where a price book fails", () => {
    const failing = {
      ...book,
      priceOf: () => {
        throw new Error("no");
      },
    };
    expect(ofBudget({ mode: "hard" }, { providers: unpriced, prices: failing })).toEqual([]);
  });
});

/** Every possible call in a small configuration. */
const calls: readonly PolicyFacts[] = Object.entries(providers).flatMap(([gateway, provider]) =>
  ["acme/one", "acme/two", "acme/twofold", "other/one"].flatMap((id) => {
    const listed = id in provider.models;
    if (!listed && !provider.open) return [];
    const [vendor = "", model = ""] = id.split("/");
    return ["D0_PUBLIC", "D1_INTERNAL"].flatMap((dataClass) =>
      [undefined, "D0_PUBLIC", "D1_INTERNAL"].flatMap((session) =>
        ["ada", "eve"].flatMap((user) =>
          [false, true].map((tools) => ({
            ...{ organization: "o", key: "k", source: "api", user, gateway, vendor, model, listed },
            ...{ dataClass, connection: provider.connection, tools, images: false },
            ...{ structuredOutput: false, serviceTier: "default" },
            ...{ estimatedInputTokens: 1, estimatedOutputTokens: 1, estimatedCostNanoUsd: 1 },
            ...(session === undefined ? {} : { session: { dataClass: session } }),
          })),
        ),
      ),
    );
  }),
);

const dataClass = fc.constantFrom("D0_PUBLIC", "D1_INTERNAL");
const range = fc.record({ from: dataClass, upTo: dataClass }, { requiredKeys: [] });
const patterns = fc.subarray(
  ["*/*/*", "closed/*/*", "*/acme/*", "open/acme/one", "*/*/two*", "own/other/one", "OPEN/*/o*e"],
  { minLength: 1 },
);
const matches: fc.Arbitrary<RuleMatch> = fc.record(
  {
    gateway: fc.subarray(Object.keys(providers), { minLength: 1 }),
    model: patterns,
    connection: fc.constantFrom("platform" as const, "customer" as const),
    listed: fc.boolean(),
    user: fc.subarray(["ada", "eve"], { minLength: 1 }),
    tools: fc.boolean(),
    from: dataClass,
    upTo: dataClass,
    session: range,
  },
  { requiredKeys: [] },
);

describe("warnings about rules", () => {
  it("are true of every call, whatever the rules are", () => {
    let warned = 0;
    const property = fc.property(
      fc.array(fc.tuple(fc.boolean(), matches), { minLength: 1, maxLength: 5 }),
      (drawn) => {
        const rules = drawn.map(([isForbid, match], at) =>
          isForbid ? forbid(`r${at}`, match) : permit(`r${at}`, match),
        );
        const dataClasses = ["D0_PUBLIC", "D1_INTERNAL"];
        const policy = definePolicy({ rules });
        const options = { store: memoryStore(), providers, policy, dataClasses };
        for (const { path, message } of warningsOf(options)) {
          warned++;
          const at = Number(/rules\[(\d+)\]/.exec(path)?.[1]);
          const rule = rules[at];
          if (rule === undefined) throw new Error(path);
          // A warning about one pattern concerns the rule with only that pattern.
          const [, model] = /: (\S+)\.$/.exec(message) ?? [];
          const match = model === undefined ? rule.match : { ...rule.match, model };
          const alone = definePolicy({ rules: [permit("alone", match)] });
          const matched = calls.filter(
            (facts) => alone.decide(facts, dataClasses).effect === "permit",
          );
          if (message.includes("never permits"))
            for (const facts of matched)
              expect(policy.decide(facts, dataClasses).effect).toBe("deny");
          else expect([message, matched]).toEqual([message, []]);
        }
      },
    );
    fc.assert(property, { numRuns: 1_000 });
    expect(warned).toBeGreaterThan(200);
  });
});
