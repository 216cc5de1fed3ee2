import type { Policy } from "../contracts/policy.ts";
import { parseModelId } from "../domain/model-id.ts";
import { listed } from "../domain/pattern.ts";
import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";
import { isTierName } from "../domain/service-tier.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { sha256Hex } from "../kernel/digest.ts";
import { type Json, stableJson } from "../kernel/stable-json.ts";
import { decideByRules } from "./rules/decide-by-rules.ts";
import type { Rule } from "./rules/rule.ts";
import { memberProblems } from "./rules/rule-members.ts";

/** A policy as rules. `version` defaults to a hash of the rules. */
export interface RulePolicy<Gateway extends string> {
  readonly version?: string;
  readonly rules: readonly Rule<Gateway>[];
}

/** A policy as a function of the facts. One that throws, or gives no verdict, denies by rule `policy-error`. */
export interface FunctionPolicy {
  readonly version: string;
  readonly decide: (facts: PolicyFacts) => Verdict;
}

/**
 * Makes a policy from rules or from a function. With rules: forbid overrides permit, and what nothing permits is denied.
 * The gateways its rules name are part of its type, so that a gateway that does not exist does not compile.
 * @throws GatewayError `invalid_configuration` for duplicate rule ids, members that no rule has, malformed patterns or
 * impossible caps.
 */
export function definePolicy<const Gateway extends string = never>(
  definition: RulePolicy<Gateway> | FunctionPolicy,
): Policy<NoInfer<Gateway>> {
  if ("decide" in definition) {
    return {
      contract: 1,
      version: definition.version,
      gateways: [],
      dataClasses: [],
      fallbacks: [],
      decide: (facts) => definition.decide(facts),
    };
  }
  const { rules } = definition;
  const problems = problemsOf(rules);
  if (problems.length > 0) throw new GatewayError("invalid_configuration", problems.join(" "));
  return {
    contract: 1,
    version: definition.version ?? sha256Hex(stableJson(asJson(rules))).slice(0, 16),
    gateways: rules.flatMap(({ match }) =>
      match.gateway === undefined ? [] : listed(match.gateway),
    ),
    dataClasses: rules.flatMap(({ match }) => [match.from ?? [], match.upTo ?? []].flat()),
    fallbacks: rules.flatMap(({ options }) => options.fallbacks ?? []),
    decide: (facts, dataClasses) => decideByRules(rules, facts, dataClasses),
  };
}

function problemsOf(rules: readonly Rule[]): readonly string[] {
  const seen = new Set<string>();
  return rules.flatMap((rule) => {
    const { id, match, options } = rule;
    const problems: string[] = [...memberProblems(rule)];
    if (id === "") problems.push("A rule has an empty id.");
    if (seen.has(id)) problems.push(`Rule ${id} is defined twice.`);
    seen.add(id);
    for (const model of [...listed(match.model ?? []), ...(options.fallbacks ?? [])]) {
      if (parseModelId(model) === null)
        problems.push(`Rule ${id}: ${model} is not <gateway>/<vendor>/<model>.`);
    }
    const cap = options.maxOutputTokens;
    if (cap !== undefined && (!Number.isSafeInteger(cap) || cap < 1)) {
      problems.push(`Rule ${id}: maxOutputTokens must be a whole number from 1.`);
    }
    for (const tier of [...listed(match.serviceTier ?? []), options.serviceTier ?? []].flat()) {
      if (!isTierName(tier))
        problems.push(`Rule ${id}: ${tier} is not the name of a service tier.`);
    }
    return problems;
  });
}

function asJson(rules: readonly Rule[]): Json {
  return JSON.parse(JSON.stringify(rules));
}
