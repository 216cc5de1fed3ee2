import type { DecisionQuery } from "../contracts/repositories.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import { listed, type OneOrMany, selects } from "../domain/pattern.ts";
import type {
  ConnectionOwnership,
  DecisionRefusal,
  PolicyDecision,
} from "../domain/policy-decision.ts";
import { filters, read } from "../input/read.ts";
import { decisionFilter } from "./schemas.ts";
import { classesBetween } from "./step-filter.ts";
import { fromIso, type OrganizationScope, tenantOf } from "./tenant.ts";

/** Which decisions to list; every given member must match, and a list matches any of its values. */
export interface DecisionFilter extends OrganizationScope {
  readonly user?: OneOrMany;
  readonly key?: OneOrMany;
  readonly effect?: "permit" | "deny";
  /** Whether a request that the policy permitted was refused. Requests that the policy denied have `effect: "deny"`. */
  readonly refused?: boolean;
  /** Only requests refused for these reasons. */
  readonly refusal?: OneOrMany<DecisionRefusal["by"]>;
  /** The id of a rule that determined the effect. */
  readonly rule?: OneOrMany;
  readonly source?: OneOrMany;
  readonly gateway?: OneOrMany;
  /** Model patterns, applied to the model that was decided on. */
  readonly model?: OneOrMany;
  readonly connection?: OneOrMany<ConnectionOwnership>;
  readonly dataClass?: { readonly from?: string; readonly upTo?: string };
  /** ISO 8601: decided at or after, and before. */
  readonly from?: string;
  readonly to?: string;
}

/**
 * What the store selects of a filter, and what is selected among those here: a page can be shorter than its limit.
 * @throws GatewayError `invalid_argument`
 */
export function readDecisionFilter(
  filter: DecisionFilter,
  dataClasses: readonly string[],
): { readonly query: DecisionQuery; readonly matches: (decision: PolicyDecision) => boolean } {
  const checked = read(decisionFilter, filter, filters);
  const { user, key, effect, refused, refusal, from, to } = checked;
  const query = {
    organizationId: tenantOf(checked),
    ...(user === undefined ? {} : { userId: listed(user) }),
    ...(key === undefined ? {} : { keyId: listed(key) }),
    ...(effect === undefined ? {} : { effect }),
    ...(refused === undefined ? {} : { refused }),
    ...(refusal === undefined ? {} : { refusedBy: listed(refusal) }),
    ...(from === undefined ? {} : { from: fromIso(from) }),
    ...(to === undefined ? {} : { to: fromIso(to) }),
  };
  return { query, matches: matcherOf(checked, dataClasses) };
}

function matcherOf(
  { rule, source, gateway, connection, model, dataClass }: DecisionFilter,
  dataClasses: readonly string[],
): (decision: PolicyDecision) => boolean {
  const rules = rule === undefined ? undefined : listed(rule);
  const classes = dataClass === undefined ? undefined : classesBetween(dataClasses, dataClass);
  return ({ facts, rules: decided }) =>
    (rules === undefined || decided.some((rule) => rules.includes(rule))) &&
    selects(source, facts.source) &&
    selects(gateway, facts.gateway) &&
    selects(connection, facts.connection) &&
    selects(classes, facts.dataClass) &&
    selectsModel(model, facts);
}
