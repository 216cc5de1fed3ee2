import type { Policy } from "../contracts/policy.ts";
import type { Obligations } from "../domain/obligations.ts";
import { listed } from "../domain/pattern.ts";
import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";
import { standardTier, tierOf } from "../domain/service-tier.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { invalidInput, problemAt, read, tryRead } from "../input/read.ts";
import { sha256Hex } from "../kernel/digest.ts";
import { type Json, stableJson } from "../kernel/stable-json.ts";
import { verdictOf } from "./decide.ts";
import { type ClassRange, type CompleteRule, matchesRule, type Rule } from "./rules.ts";
import { functionPolicySchema, rulePolicySchema } from "./schema.ts";

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

/** A policy as a function of the facts. If it throws or returns no verdict, rule `policy-error` denies the request. */
export interface FunctionPolicy {
  readonly version: string;
  readonly decide: (facts: PolicyFacts) => Verdict;
  /** As `sessions` of `RulePolicy`. */
  readonly sessions?: "raise";
}

/**
 * Makes a policy from rules or from a function. With rules, forbid overrides permit, and anything that no rule permits is
 * denied. The gateways that rules name are part of the policy's type, so an unknown gateway doesn't compile. Rules may come
 * from a JSON or YAML file: every member is checked.
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
  const { version, sessions, ...given } = read(rulePolicySchema, definition, asConfiguration);
  const rules = given.rules.map(completed);
  requireDistinctIds(rules);
  const policy: Policy & { readonly rules: readonly Rule[] } = {
    contract: 1,
    version: version ?? hashOf(rules, sessions),
    gateways: rules.flatMap(({ match }) => listed(match.gateway ?? [])),
    models: rules.flatMap(({ match }) => listed(match.model ?? [])),
    dataClasses: rules.flatMap(({ match }) => [...rangeOf(match), ...rangeOf(match.session ?? {})]),
    fallbacks: rules.flatMap(({ options }) => options.fallbacks ?? []),
    sessions: sessions ?? (rules.some(({ match }) => match.session) ? "read" : "ignore"),
    ignoresEstimates: true,
    decide: (facts, dataClasses) => decideByRules(rules, facts, dataClasses),
    // For `rulesOf` only: `decide` decides.
    rules,
  };
  return policy;
}

/** The rules of a policy that `definePolicy` made from rules; null for any other. */
export function rulesOf(policy: Policy | undefined): readonly CompleteRule[] | null {
  if (policy === undefined || !("rules" in policy)) return null;
  return tryRead(rulePolicySchema, { rules: policy.rules }).value?.rules.map(completed) ?? null;
}

function completed({ match = {}, options = {}, ...rule }: Rule): CompleteRule {
  return { ...rule, match, options };
}

/** `{ user: undefined }` must not permit every user. */
const asConfiguration = {
  code: "invalid_configuration",
  noun: "member",
  allowUndefined: false,
} as const;

/** Decisions record rule ids, so an id names one rule. */
function requireDistinctIds(rules: readonly Rule[]): void {
  const seen = new Map<string, number>();
  const problems = rules.flatMap(({ id }, at) => {
    const earlier = seen.get(id);
    if (earlier !== undefined)
      return [problemAt(`rules[${at}].id`, `is also the id of \`rules[${earlier}]\``)];
    seen.set(id, at);
    return [];
  });
  if (problems.length > 0) throw invalidInput(problems, "invalid_configuration");
}

function rangeOf({ from, upTo }: ClassRange): readonly string[] {
  return [from ?? [], upTo ?? []].flat();
}

/** A hash of everything that affects decisions. */
function hashOf(rules: readonly Rule[], sessions: "raise" | undefined): string {
  const definition: Json = JSON.parse(JSON.stringify(sessions ? { rules, sessions } : rules));
  return sha256Hex(stableJson(definition)).slice(0, 16);
}

/** Forbid overrides permit. If no rule permits the request, it is denied. */
function decideByRules(
  rules: readonly CompleteRule[],
  facts: PolicyFacts,
  dataClasses: readonly string[],
): Verdict {
  const matching = rules.filter((rule) => matchesRule(rule.match, facts, dataClasses));
  const forbids = matching.filter((rule) => rule.effect === "forbid");
  if (forbids.length > 0) return mergeVerdicts("deny", forbids.map(partOf));
  if (matching.length === 0)
    return { effect: "deny", rules: [], reason: "No rule permits this request." };
  return mergeVerdicts("permit", matching.map(partOf));
}

/** The part of a verdict that comes from one rule or policy. */
interface VerdictPart extends Pick<Verdict, "rules"> {
  readonly reason?: string | undefined;
  readonly obligations?: Obligations;
}

function partOf({ id, options }: CompleteRule): VerdictPart {
  return { rules: [id], reason: options.reason, obligations: options };
}

/**
 * Combines several policies into one that permits only what all of them permit. A denial names the rules of every policy
 * that denied. Obligations are merged to the strictest, and the fallbacks are those of the first policy that has any.
 * Sessions are raised if any policy raises them.
 */
export function combine<const Policies extends readonly Policy<string>[]>(
  ...policies: Policies
): Policy<Policies[number]["gateways"][number]> {
  if (policies.length === 0)
    throw new GatewayError("invalid_configuration", "`combine` needs at least one policy.");
  return {
    contract: 1,
    version: policies.map((policy) => policy.version).join("+"),
    gateways: policies.flatMap((policy) => policy.gateways),
    models: policies.flatMap((policy) => policy.models ?? []),
    dataClasses: policies.flatMap((policy) => policy.dataClasses),
    fallbacks: policies.flatMap((policy) => policy.fallbacks),
    sessions: strictestSessions(policies.map(({ sessions }) => sessions)),
    ignoresEstimates: policies.every(({ ignoresEstimates }) => ignoresEstimates === true),
    decide(facts, dataClasses) {
      const verdicts = policies.map((policy) => verdictOf(policy, facts, dataClasses));
      const denials = verdicts.filter((verdict) => verdict.effect === "deny");
      return denials.length > 0
        ? mergeVerdicts("deny", denials)
        : mergeVerdicts("permit", verdicts);
    },
  };
}

function strictestSessions(all: readonly Policy["sessions"][]): Policy["sessions"] {
  if (all.includes("raise")) return "raise";
  return all.includes("read") ? "read" : "ignore";
}

function mergeVerdicts(effect: Verdict["effect"], parts: readonly VerdictPart[]): Verdict {
  const reason = parts.find((part) => part.reason !== undefined)?.reason;
  const obligations =
    effect === "permit" ? mergeObligations(parts.map((part) => part.obligations ?? {})) : {};
  return {
    effect,
    rules: parts.flatMap(({ rules }) => rules),
    ...(reason === undefined ? {} : { reason }),
    ...(Object.keys(obligations).length === 0 ? {} : { obligations }),
  };
}

/** Every obligation, so the compiler names this place when one is added. */
type AllObligations = { readonly [Name in keyof Obligations]-?: Obligations[Name] | undefined };

/**
 * The obligations of several permits together: the lowest cap, digest before full, the first fallbacks, the standard
 * service tier before any other, a customer-owned connection if one of them requires it.
 */
function mergeObligations(all: readonly Obligations[]): Obligations {
  const caps = all.flatMap((each) => each.maxOutputTokens ?? []);
  const transcripts = all.flatMap((each) => each.transcript ?? []);
  const tiers = all.flatMap((each) => each.serviceTier ?? []).map(tierOf);
  const merged: AllObligations = {
    fallbacks: all.find((each) => each.fallbacks !== undefined)?.fallbacks,
    maxOutputTokens: caps.length === 0 ? undefined : Math.min(...caps),
    transcript: transcripts.includes("digest") ? "digest" : transcripts[0],
    serviceTier: tiers.includes(standardTier) ? standardTier : tiers[0],
    connection: all.some((each) => each.connection === "customer") ? "customer" : undefined,
  };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined));
}
