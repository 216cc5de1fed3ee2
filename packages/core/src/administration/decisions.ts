import type { DecisionQuery } from "../contracts/repositories.ts";
import { listed, type OneOrMany } from "../domain/pattern.ts";
import type { PolicyDecision } from "../domain/policy-decision.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Line } from "../pipeline/line.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { fromIso, type OrganizationScope, requireId, tenantOf, toIso } from "./tenant.ts";

/** A recorded policy decision, permitted or denied. */
export interface DecisionRecord extends Omit<PolicyDecision, "at"> {
  readonly at: string;
}

/** Which decisions to list; every given member must match. */
export interface DecisionFilter extends OrganizationScope {
  readonly user?: OneOrMany;
  readonly key?: OneOrMany;
  readonly effect?: "permit" | "deny";
  /** ISO 8601: decided at or after, and before. */
  readonly from?: string;
  readonly to?: string;
}

/** Policy decisions: every request that got as far as one. */
export interface Decisions {
  /** Newest first. */
  list(filter: DecisionFilter, paging?: Paging): List<DecisionRecord>;
  /** @throws GatewayError `decision_not_found` */
  get(reference: OrganizationScope & { readonly id: string }): Promise<DecisionRecord>;
}

export function createDecisions({ store }: Line, ready: () => Promise<void>): Decisions {
  return {
    list: (filter, paging) =>
      listOf(
        async (storePaging) => {
          await ready();
          return store.decisions.list(queryOf(filter), storePaging);
        },
        toRecord,
        paging,
      ),
    async get({ organizationId, id }) {
      await ready();
      const decision = await store.decisions.get(tenantOf({ organizationId }), requireId("id", id));
      if (!decision)
        throw new GatewayError(
          "decision_not_found",
          "There is no such decision in this organization.",
        );
      return toRecord(decision);
    },
  };
}

function queryOf(filter: DecisionFilter): DecisionQuery {
  const { user, key, effect, from, to } = filter;
  return {
    organizationId: tenantOf(filter),
    ...(user === undefined ? {} : { userId: listed(user) }),
    ...(key === undefined ? {} : { keyId: listed(key) }),
    ...(effect === undefined ? {} : { effect }),
    ...(from === undefined ? {} : { from: fromIso("from", from) }),
    ...(to === undefined ? {} : { to: fromIso("to", to) }),
  };
}

function toRecord(decision: PolicyDecision): DecisionRecord {
  return { ...decision, at: toIso(decision.at) };
}
