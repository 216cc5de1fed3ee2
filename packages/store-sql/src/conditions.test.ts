import { expect, it } from "vitest";
import { createConditions } from "./conditions.ts";

const conditions = createConditions({
  contains: (column, parameter) => `instr(${column}, ${parameter}) > 0`,
  isOneOf: (column, parameter) => `${column} = ANY(${parameter})`,
  list: (values) => JSON.stringify(values),
});

/** The conditions of the indexes for lists, which every row meets. */
const ofIndexes = { text: "sequence >= 0", parameters: {} };

it("never puts a filter's value into the statement's text (S1)", () => {
  const hostile = "x' OR 1=1; DROP TABLE steps; --";
  const texts = [
    ...conditions.ofSteps({ organizationId: hostile, model: [hostile], keyId: [hostile] }),
    ...conditions.ofSessions({ organizationId: hostile, source: hostile }),
    ...conditions.ofKeys({ organizationId: hostile, userId: hostile }),
    ...conditions.ofDecisions({ organizationId: hostile, userId: [hostile] }),
    ...conditions.ofChanges({ organizationId: hostile, kind: [hostile] }).slice(1),
    ...conditions.ofCounters({ budgetId: hostile, subject: hostile }),
  ].map(({ text }) => text);
  expect(texts).toHaveLength(17);
  for (const text of texts.filter((one) => !/^(created_at|length|sequence) >= 0$/.test(one)))
    expect(text).toMatch(/^(?:[a-z_]+|lower\(model\))(?: \|\| '')? = (:[a-z_]+|ANY\(:[a-z_]+\))$/);
});

it("reads across organizations only on request, with only the indexes' conditions", () => {
  expect(conditions.ofSteps({ organizationId: null })).toEqual([ofIndexes]);
  expect(conditions.ofSteps({ organizationId: "acme" })).toEqual([
    ofIndexes,
    { text: "organization_id = :organization_id", parameters: { organization_id: "acme" } },
  ]);
});

it("matches nothing for an empty list", () => {
  expect(conditions.ofSteps({ organizationId: null, model: [] })).toEqual([
    ofIndexes,
    { text: "lower(model) = ANY(:model)", parameters: { model: "[]" }, sifts: true },
  ]);
});

it("finds a Turn's Steps through its Session, and unsuccessful Steps by their own column", () => {
  const texts = (query: Parameters<typeof conditions.ofSteps>[0]) =>
    conditions.ofSteps(query).map(({ text }) => text.replaceAll(/\s+/g, " "));
  expect(texts({ organizationId: "acme", turnId: ["t"] })).toContain(
    "session_id = (SELECT session_id FROM turns WHERE organization_id = :organization_id AND id = :turn_id)",
  );
  expect(texts({ organizationId: null, turnId: ["t"] })).toContain(
    "session_id = (SELECT session_id FROM turns WHERE organization_id = o.id AND id = :turn_id)",
  );
  expect(texts({ organizationId: null, turnId: ["t", "u"] })).toHaveLength(2);
  expect(texts({ organizationId: null, outcome: ["failed"] })).toEqual([
    ofIndexes.text,
    "unsuccessful = :unsuccessful",
  ]);
  for (const outcome of [["completed"], ["open"], ["failed", "open"]] as const)
    expect(texts({ organizationId: null, outcome })[1]).toMatch(/^outcome/);
  expect(conditions.ofDecisions({ organizationId: null, effect: "deny" })).toEqual([
    ofIndexes,
    { text: "effect = 'deny'", parameters: {} },
  ]);
});
