import type { DecisionQuery } from "../contracts/repositories.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import { type OneOrMany, selects } from "../domain/pattern.ts";
import type { ConnectionOwnership, PolicyDecision } from "../domain/policy-decision.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { requireMembers } from "./require-members.ts";
import { classesBetween, modelPatternsOf } from "./step-filter.ts";
import { fromIso, type OrganizationScope, tenantOf } from "./tenant.ts";
import { valuesOf } from "./values-of.ts";

/** Which decisions to list; every given member must match, and a list matches any of its values. */
export interface DecisionFilter extends OrganizationScope {
  readonly user?: OneOrMany;
  readonly key?: OneOrMany;
  readonly effect?: "permit" | "deny";
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

const members = [
  "organizationId",
  "user",
  "key",
  "effect",
  "rule",
  "source",
  "gateway",
  "model",
  "connection",
  "dataClass",
  "from",
  "to",
];

/**
 * What the store selects of a filter, and what is selected among those here: a page can be shorter than its limit.
 * @throws GatewayError `invalid_argument`
 */
export function readDecisionFilter(
  filter: DecisionFilter,
  dataClasses: readonly string[],
): { readonly query: DecisionQuery; readonly matches: (decision: PolicyDecision) => boolean } {
  const { user, key, effect, from, to } = filter;
  requireMembers(filter, members);
  if (effect !== undefined && effect !== "permit" && effect !== "deny")
    throw wrong("effect", "effect must be permit or deny.");
  const query = {
    organizationId: tenantOf(filter),
    ...(user === undefined ? {} : { userId: valuesOf("user", user) }),
    ...(key === undefined ? {} : { keyId: valuesOf("key", key) }),
    ...(effect === undefined ? {} : { effect }),
    ...(from === undefined ? {} : { from: fromIso("from", from) }),
    ...(to === undefined ? {} : { to: fromIso("to", to) }),
  };
  return { query, matches: matcherOf(filter, dataClasses) };
}

function matcherOf(
  filter: DecisionFilter,
  dataClasses: readonly string[],
): (decision: PolicyDecision) => boolean {
  const asked = (name: "rule" | "source" | "gateway" | "connection") =>
    filter[name] === undefined ? undefined : valuesOf(name, filter[name]);
  const rules = asked("rule");
  const [sources, gateways, connections] = [asked("source"), asked("gateway"), asked("connection")];
  const patterns = modelPatternsOf(filter.model);
  const { dataClass } = filter;
  const classes = dataClass === undefined ? undefined : classesBetween(dataClasses, dataClass);
  return ({ facts, rules: decided }) =>
    (rules === undefined || decided.some((rule) => rules.includes(rule))) &&
    selects(sources, facts.source) &&
    selects(gateways, facts.gateway) &&
    selects(connections, facts.connection) &&
    selects(classes, facts.dataClass) &&
    selectsModel(patterns, facts);
}

function wrong(param: string, message: string): GatewayError {
  return new GatewayError("invalid_argument", message, { param });
}
