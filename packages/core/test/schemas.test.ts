import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import {
  administrationSchemas,
  budgetSchema,
  gatewaySettingsSchema,
  jsonSchemaOf,
  priceTableSchema,
  rulePolicySchema,
  type Schema,
  tryRead,
} from "../src/schemas.ts";

const policy = {
  version: "1",
  rules: [
    { effect: "permit", id: "all" },
    {
      effect: "permit",
      id: "usual",
      match: {
        organization: "acme",
        gateway: ["test"],
        model: "test/a/*",
        upTo: "D1",
        tools: true,
      },
      options: { maxOutputTokens: 100, transcript: "digest", fallbacks: ["test/a/b"] },
    },
    { effect: "forbid", id: "no", match: { model: ["*/*/*-preview"] }, options: { reason: "old" } },
  ],
};
const budget = {
  id: "acme-month",
  scope: { organization: ["acme"], model: "test/a/*", connection: "platform", each: "user" },
  limit: { usd: "5.00" },
  period: "month",
  mode: "hard",
  warnAt: [0.5, 1],
};
const prices = {
  "test/a/b": {
    input: "0.25",
    output: 1,
    cacheWrite: { "5m": 1 },
    audio: { input: 1 },
    longPrompt: [{ above: 10, input: 1, output: 2 }],
    tiers: { flex: { input: 1, output: 1 } },
    maxOutputTokens: 10,
  },
  "test/a/c": {},
};
const settings = {
  policy,
  budgets: [budget, { id: "b", limit: { requests: 1 }, period: "day" }],
  prices,
  dataClasses: ["D0", "D1"],
  aliases: { fast: "test/a/b" },
  limits: { messages: 10 },
  deadlines: { idle: "60s", total: 1_000 },
  retries: { backoff: 10, allowDuplicates: false },
  retention: { responses: "30d" },
  onDisconnect: "abort",
  toolOutputs: "parts",
  sessions: { leadingSystem: "apart" },
  headerPrefix: "X-App-",
  maintenance: true,
};
const acme = { organizationId: "acme" };

interface Example {
  readonly schema: Schema<unknown>;
  readonly valid: object;
  /** Each breaks a rule that JSON Schema can express. */
  readonly invalid: readonly object[];
}

const examples: Readonly<Record<string, Example>> = {
  settings: {
    schema: gatewaySettingsSchema,
    valid: settings,
    invalid: [
      { polcy: policy },
      { retries: 0 },
      { limits: { mesages: 5 } },
      { deadlines: { idle: "soon" } },
      { dataClasses: ["a b"] },
      { aliases: { fast: 5 } },
    ],
  },
  policy: {
    schema: rulePolicySchema,
    valid: policy,
    invalid: [
      {},
      { rules: [{ effect: "deny", id: "a" }] },
      { rules: [{ id: "a" }] },
      { rules: [{ effect: "permit", id: "a", match: { connection: "Platform" } }] },
      { rules: [{ effect: "permit", id: "a", match: { model: "gpt" } }] },
    ],
  },
  budget: {
    schema: budgetSchema,
    valid: budget,
    invalid: [{}, { ...budget, limit: { usd: -1 } }, { ...budget, perod: "day" }],
  },
  prices: {
    schema: priceTableSchema,
    valid: prices,
    invalid: [{ "a/b/c": { inptu: 1 } }, { "a/b/c": 3 }, { "a/b/c": { input: "x", output: 1 } }],
  },
  "keys.create": {
    schema: administrationSchemas["keys.create"],
    valid: { ...acme, userId: "ada", label: "l", models: null, expiresAt: "2999-01-01" },
    invalid: [{ ...acme, userId: "ada", label: "l", modles: null }, acme],
  },
  "keys.rotate": {
    schema: administrationSchemas["keys.rotate"],
    valid: { ...acme, id: "k", overlap: "24h" },
    invalid: [{ ...acme, id: "k", overlapp: "24h" }],
  },
  "steps.list": {
    schema: administrationSchemas["steps.list"],
    valid: { ...acme, user: ["ada"], outcome: "failed", from: "2026-01-01" },
    invalid: [{ ...acme, outcome: "fine" }, { user: "ada" }, { organizationId: "" }],
  },
};

const ajv = new Ajv2020({ allErrors: true });

describe("JSON Schemas", () => {
  it.each(Object.entries(examples))(
    "of %s accept and refuse the same values as the schema",
    (_name, { schema, valid, invalid }) => {
      const validate = ajv.compile(jsonSchemaOf(schema));
      expect(tryRead(schema, valid).problems).toEqual([]);
      expect([validate(valid), validate.errors]).toEqual([true, null]);
      for (const wrong of invalid) {
        expect(tryRead(schema, wrong).problems, JSON.stringify(wrong)).not.toEqual([]);
        expect(validate(wrong), JSON.stringify(wrong)).toBe(false);
      }
    },
  );

  it.each(Object.entries(administrationSchemas))("of %s are strict objects", (_name, schema) => {
    const written = jsonSchemaOf(schema);
    expect(ajv.validateSchema(written)).toBe(true);
    expect(ajv.compile(written)({ noSuchMember: 1 })).toBe(false);
  });

  it("describe the rules that they have no keyword for", () => {
    expect(JSON.stringify(jsonSchemaOf(budgetSchema))).toContain("visible ASCII characters");
    expect(JSON.stringify(jsonSchemaOf(gatewaySettingsSchema))).toContain("must be a duration");
  });
});
