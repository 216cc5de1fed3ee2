import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";
import { isTierName } from "../domain/service-tier.ts";
import type { Schema } from "../input/read.ts";
import {
  connectionOwnership,
  dataClassName,
  fullModelId,
  modelPattern,
  oneOrMany,
  opaqueId,
  text,
  wholeNumber,
} from "../input/values.ts";
import * as z from "../input/z.ts";
import type { Rule, RuleMatch, RuleOptions } from "./rules.ts";

const selector = z.exactOptional(oneOrMany(opaqueId));
const flag = z.exactOptional(z.boolean());

const tierName = text(isTierName, "must be the name of a service tier, such as priority");

const classRange = { from: z.exactOptional(dataClassName), upTo: z.exactOptional(dataClassName) };

/** Strict, because a rule whose mistyped member was ignored would match everything. */
const match: Schema<RuleMatch> = z.strictObject({
  organization: selector,
  user: selector,
  key: selector,
  gateway: selector,
  model: z.exactOptional(oneOrMany(modelPattern)),
  listed: flag,
  connection: z.exactOptional(oneOrMany(connectionOwnership)),
  source: selector,
  ...classRange,
  session: z.exactOptional(z.strictObject(classRange)),
  tools: flag,
  images: flag,
  structuredOutput: flag,
  embeddings: flag,
  serviceTier: z.exactOptional(oneOrMany(tierName)),
} satisfies Record<keyof RuleMatch, unknown>);

const reason = z.exactOptional(z.string());

const permitOptions: Schema<RuleOptions> = z.strictObject({
  fallbacks: z.exactOptional(z.array(fullModelId)),
  maxOutputTokens: z.exactOptional(wholeNumber(1)),
  transcript: z.exactOptional(z.enum(["full", "digest"])),
  serviceTier: z.exactOptional(tierName),
  connection: z.exactOptional(z.literal("customer")),
  reason,
} satisfies Record<keyof RuleOptions, unknown>);

const sessions = z.exactOptional(z.literal("raise"));

/** One rule of a policy as data. Only permits take obligations. */
const rule: Schema<Rule> = z.discriminatedUnion("effect", [
  z.strictObject({
    effect: z.literal("permit"),
    id: opaqueId,
    match: z.exactOptional(match),
    options: z.exactOptional(permitOptions),
  }),
  z.strictObject({
    effect: z.literal("forbid"),
    id: opaqueId,
    match: z.exactOptional(match),
    options: z.exactOptional(z.strictObject({ reason })),
  }),
]);

/** A policy as rules, such as one in a JSON or YAML file. */
export const rulePolicySchema: Schema<{
  readonly version?: string;
  readonly rules: readonly Rule[];
  readonly sessions?: "raise";
}> = z.strictObject({ version: z.exactOptional(opaqueId), rules: z.array(rule), sessions });

/** A policy as a function. */
export const functionPolicySchema: Schema<{
  readonly version: string;
  readonly decide: (facts: PolicyFacts) => Verdict;
  readonly sessions?: "raise";
}> = z.strictObject({
  version: opaqueId,
  decide: z.custom<(facts: PolicyFacts) => Verdict>((value) => typeof value === "function", {
    error: "must be a function",
  }),
  sessions,
});
