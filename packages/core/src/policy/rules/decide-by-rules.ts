import type { PolicyFacts, Verdict } from "../../domain/policy-decision.ts";
import { strictest } from "../strictest.ts";
import { matchesRule } from "./matches-rule.ts";
import type { Rule } from "./rule.ts";

/** Forbid wins; where nothing permits, it is denied. */
export function decideByRules(
  rules: readonly Rule[],
  facts: PolicyFacts,
  dataClasses: readonly string[],
): Verdict {
  const matching = rules.filter((rule) => matchesRule(rule.match, facts, dataClasses));
  const forbids = matching.filter((rule) => rule.effect === "forbid");
  if (forbids.length > 0) return verdict("deny", forbids);
  if (matching.length === 0)
    return { effect: "deny", rules: [], reason: "No rule permits this request." };
  return verdict("permit", matching);
}

function verdict(effect: Verdict["effect"], rules: readonly Rule[]): Verdict {
  const reason = rules.find((rule) => rule.options.reason !== undefined)?.options.reason;
  const obligations = effect === "permit" ? strictest(rules.map((rule) => rule.options)) : {};
  return {
    effect,
    rules: rules.map((rule) => rule.id),
    ...(reason === undefined ? {} : { reason }),
    ...(Object.keys(obligations).length === 0 ? {} : { obligations }),
  };
}
