import { selectsModel } from "../../domain/model-pattern.ts";
import { listed, selects } from "../../domain/pattern.ts";
import type { PolicyFacts } from "../../domain/policy-decision.ts";
import { tierOf } from "../../domain/service-tier.ts";
import type { RuleMatch } from "./rule.ts";

/** Whether a rule's match covers the facts; `dataClasses` is the order that `from` and `upTo` refer to. */
export function matchesRule(
  match: RuleMatch,
  facts: PolicyFacts,
  dataClasses: readonly string[],
): boolean {
  const rank = dataClasses.indexOf(facts.dataClass);
  return (
    selects(match.organization, facts.organization) &&
    selects(match.user, facts.user) &&
    selects(match.key, facts.key) &&
    selects(match.gateway, facts.gateway) &&
    selects(match.connection, facts.connection) &&
    selects(match.source, facts.source) &&
    (match.from === undefined || rank >= dataClasses.indexOf(match.from)) &&
    (match.upTo === undefined || rank <= dataClasses.indexOf(match.upTo)) &&
    same(match.listed, facts.listed) &&
    same(match.tools, facts.tools) &&
    same(match.images, facts.images) &&
    same(match.structuredOutput, facts.structuredOutput) &&
    (match.serviceTier === undefined ||
      listed(match.serviceTier).map(tierOf).includes(facts.serviceTier)) &&
    selectsModel(match.model, facts)
  );
}

function same(wanted: boolean | undefined, actual: boolean): boolean {
  return wanted === undefined || wanted === actual;
}
