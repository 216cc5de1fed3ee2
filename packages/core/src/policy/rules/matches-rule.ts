import { selectsModel } from "../../domain/model-pattern.ts";
import { listed, selects } from "../../domain/pattern.ts";
import type { PolicyFacts } from "../../domain/policy-decision.ts";
import { tierOf } from "../../domain/service-tier.ts";
import type { ClassRange, RuleMatch } from "./rule.ts";

/** Whether a rule's match covers the facts; `dataClasses` is the order that `from` and `upTo` refer to. */
export function matchesRule(
  match: RuleMatch,
  facts: PolicyFacts,
  dataClasses: readonly string[],
): boolean {
  const rank = (dataClass: string): number => dataClasses.indexOf(dataClass);
  const isIn = ({ from, upTo }: ClassRange, dataClass: string | undefined): boolean => {
    const place = dataClass === undefined ? -1 : rank(dataClass);
    return (
      (from === undefined || place >= rank(from)) && (upTo === undefined || place <= rank(upTo))
    );
  };
  return (
    selects(match.organization, facts.organization) &&
    selects(match.user, facts.user) &&
    selects(match.key, facts.key) &&
    selects(match.gateway, facts.gateway) &&
    selects(match.connection, facts.connection) &&
    selects(match.source, facts.source) &&
    isIn(match, facts.dataClass) &&
    isIn(match.session ?? {}, facts.session?.dataClass) &&
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
