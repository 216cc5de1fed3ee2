import { expect, it } from "vitest";
import { createConditions } from "./conditions.ts";

const conditions = createConditions({
  placeholder: () => "?",
  text: "TEXT",
  integer: "INTEGER",
  bytes: "BLOB",
  keyedTable: "",
  isOneOf: (column, parameter) => `${column} = ANY(${parameter})`,
  list: (values) => JSON.stringify(values),
});

it("never lets a filter's value into the text (S1)", () => {
  const hostile = "x' OR 1=1; DROP TABLE steps; --";
  const texts = [
    ...conditions.ofSteps({ organizationId: hostile, model: [hostile], keyId: [hostile] }),
    ...conditions.ofSessions({ organizationId: hostile, source: hostile }),
    ...conditions.ofKeys({ organizationId: hostile, userId: hostile }),
    ...conditions.ofDecisions({ organizationId: hostile, userId: [hostile] }),
    ...conditions.ofCounters({ budgetId: hostile, subject: hostile }),
  ].map(({ text }) => text);
  expect(texts).toHaveLength(11);
  for (const text of texts) expect(text).toMatch(/^[a-z_]+ = (:[a-z_]+|ANY\(:[a-z_]+\))$/);
});

it("reads across organizations only when asked to, and then without a condition", () => {
  expect(conditions.ofSteps({ organizationId: null })).toEqual([]);
  expect(conditions.ofSteps({ organizationId: "acme" })).toEqual([
    { text: "organization_id = :organization_id", parameters: { organization_id: "acme" } },
  ]);
});

it("takes an empty list as matching nothing, not as no filter", () => {
  expect(conditions.ofSteps({ organizationId: null, model: [] })).toEqual([
    { text: "model = ANY(:model)", parameters: { model: "[]" } },
  ]);
});
