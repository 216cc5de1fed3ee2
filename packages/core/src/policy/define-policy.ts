import type { Policy } from "../contracts/policy.ts";
import { listed } from "../domain/pattern.ts";
import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";
import { invalidInput, problemAt, read } from "../input/read.ts";
import { sha256Hex } from "../kernel/digest.ts";
import { type Json, stableJson } from "../kernel/stable-json.ts";
import { decideByRules } from "./rules/decide-by-rules.ts";
import type { ClassRange, Rule } from "./rules/rule.ts";
import { functionPolicySchema, rulePolicySchema } from "./rules/schema.ts";

/** A policy as rules. `version` defaults to a hash of the rules. */
export interface RulePolicy<Gateway extends string> {
  readonly version?: string;
  readonly rules: readonly Rule<Gateway>[];
  /**
   * `raise`: no request's class may be below the most sensitive class of the Session it continues. Tollgate raises a key's
   * default class to it; a header below it is 400 `data_class_below_floor`. Default: each request has its own class.
   */
  readonly sessions?: "raise";
}

/** A policy as a function of the facts. One that throws, or gives no verdict, denies by rule `policy-error`. */
export interface FunctionPolicy {
  readonly version: string;
  readonly decide: (facts: PolicyFacts) => Verdict;
  /** As `sessions` of `RulePolicy`. */
  readonly sessions?: "raise";
}

/**
 * Makes a policy from rules or from a function. With rules: forbid overrides permit, and what nothing permits is denied.
 * The gateways its rules name are part of its type, so that a gateway that does not exist does not compile. Rules may
 * come from a JSON or YAML file: every member is checked.
 * @throws GatewayError `invalid_configuration` with every problem and its path.
 */
export function definePolicy<const Gateway extends string = never>(
  definition: RulePolicy<Gateway> | FunctionPolicy,
): Policy<NoInfer<Gateway>>;
export function definePolicy(definition: RulePolicy<string> | FunctionPolicy): Policy {
  if (typeof definition === "object" && definition !== null && "decide" in definition) {
    const { version, decide, sessions } = read(functionPolicySchema, definition, asConfiguration);
    return {
      contract: 1,
      version,
      gateways: [],
      dataClasses: [],
      fallbacks: [],
      sessions: sessions ?? "read",
      decide: (facts) => decide(facts),
    };
  }
  const { version, rules, sessions } = read(rulePolicySchema, definition, asConfiguration);
  requireDistinct(rules);
  const policy: Policy & { readonly rules: readonly Rule[] } = {
    contract: 1,
    version: version ?? hashOf(rules, sessions),
    gateways: rules.flatMap(({ match }) => listed(match.gateway ?? [])),
    dataClasses: rules.flatMap(({ match }) => [...rangeOf(match), ...rangeOf(match.session ?? {})]),
    fallbacks: rules.flatMap(({ options }) => options.fallbacks ?? []),
    sessions: sessions ?? (rules.some(({ match }) => match.session) ? "read" : "ignore"),
    ignoresEstimates: true,
    decide: (facts, dataClasses) => decideByRules(rules, facts, dataClasses),
    // For `warningsOf` only: `decide` decides.
    rules,
  };
  return policy;
}

/** A permit for `{ user: undefined }` would be one for everybody. */
const asConfiguration = {
  code: "invalid_configuration",
  noun: "member",
  allowUndefined: false,
} as const;

/** A rule's id is recorded with what it decided, so it names one rule. */
function requireDistinct(rules: readonly Rule[]): void {
  const seen = new Set<string>();
  const twice = rules.flatMap(({ id }, at) => {
    if (!seen.has(id)) return seen.add(id) && [];
    return [problemAt(`rules[${at}].id`, `is the id of an earlier rule, ${JSON.stringify(id)}`)];
  });
  if (twice.length > 0) throw invalidInput(twice, "invalid_configuration");
}

function rangeOf({ from, upTo }: ClassRange): readonly string[] {
  return [from ?? [], upTo ?? []].flat();
}

/** A hash of everything that affects decisions. */
function hashOf(rules: readonly Rule[], sessions: "raise" | undefined): string {
  const definition: Json = JSON.parse(JSON.stringify(sessions ? { rules, sessions } : rules));
  return sha256Hex(stableJson(definition)).slice(0, 16);
}
