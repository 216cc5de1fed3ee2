import type { DecisionQuery } from "../contracts/repositories.ts";
import { formatModelId } from "../domain/model-id.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import { listed, type OneOrMany, selects } from "../domain/pattern.ts";
import type {
  ConnectionOwnership,
  DecisionRefusal,
  PolicyDecision,
} from "../domain/policy-decision.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { filters, read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { type ExportColumn, type ExportOptions, exportFile } from "./export.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { method } from "./method.ts";
import { decisionFilter, recordReference } from "./schemas.ts";
import { classesBetween } from "./step-filter.ts";
import { type OrganizationScope, rangeOf, tenantOf, toIso } from "./tenant.ts";

/** A recorded policy decision, permitted or denied. */
export interface DecisionRecord extends Omit<PolicyDecision, "at"> {
  readonly at: string;
}

/** Selects decisions. Every given member must match; a list matches any of its values. */
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
  /** Model patterns, applied to the model of the decision. */
  readonly model?: OneOrMany;
  readonly connection?: OneOrMany<ConnectionOwnership>;
  readonly dataClass?: { readonly from?: string; readonly upTo?: string };
  /** ISO 8601: decided at or after `from`, and before `to`, which must not be earlier. */
  readonly from?: string;
  readonly to?: string;
}

/** Policy decisions: one for each request that reached the policy. */
export interface Decisions {
  /** Newest first. */
  list(filter: DecisionFilter, paging?: Paging): List<DecisionRecord>;
  /** @throws GatewayError `decision_not_found` */
  get(reference: OrganizationScope & { readonly id: string }): Promise<DecisionRecord>;
  /** Exports decisions, as `steps.export` does with Steps. */
  export(filter: DecisionFilter, options: ExportOptions): ReadableStream<Uint8Array>;
}

export function createDecisions(context: GatewayContext, ready: () => Promise<void>): Decisions {
  const { store, dataClasses } = context;
  const list: Decisions["list"] = (filter, paging) =>
    listOf(
      async (storePaging) => {
        const { query, matches } = readFilter(filter, dataClasses);
        await ready();
        const page = await store.decisions.list(query, storePaging);
        return { ...page, data: page.data.filter(matches) };
      },
      toRecord,
      paging,
    );
  return {
    list,
    export: (filter, options) => {
      const { query } = readFilter(filter, dataClasses);
      return exportFile(context, ready, options, {
        columns: decisionColumns,
        tenant: query.organizationId,
        read: (organizationId, paging) => list({ ...filter, organizationId }, paging),
      });
    },
    get: method(recordReference, async (reference) => {
      await ready();
      const decision = await store.decisions.get(tenantOf(reference), reference.id);
      if (decision) return toRecord(decision);
      throw new GatewayError(
        "decision_not_found",
        "Unknown id: this organization has no such decision.",
      );
    }),
  };
}

function toRecord(decision: PolicyDecision): DecisionRecord {
  return { ...decision, at: toIso(decision.at) };
}

/**
 * Splits a filter into the query for the store and the test that its rows must pass. A page can therefore be shorter than
 * its limit.
 * @throws GatewayError `invalid_argument`
 */
function readFilter(
  filter: DecisionFilter,
  dataClasses: readonly string[],
): { readonly query: DecisionQuery; readonly matches: (decision: PolicyDecision) => boolean } {
  const checked = read(decisionFilter, filter, filters);
  const { user, key, effect, refused, refusal } = checked;
  const query = {
    organizationId: tenantOf(checked),
    ...(user === undefined ? {} : { userId: listed(user) }),
    ...(key === undefined ? {} : { keyId: listed(key) }),
    ...(effect === undefined ? {} : { effect }),
    ...(refused === undefined ? {} : { refused }),
    ...(refusal === undefined ? {} : { refusedBy: listed(refusal) }),
    ...rangeOf(checked),
  };
  return { query, matches: matcherOf(checked, dataClasses) };
}

function matcherOf(
  { rule, source, gateway, connection, model, dataClass }: DecisionFilter,
  dataClasses: readonly string[],
): (decision: PolicyDecision) => boolean {
  const selected = rule === undefined ? undefined : listed(rule);
  const classes = dataClass === undefined ? undefined : classesBetween(dataClasses, dataClass);
  return ({ facts, rules }) =>
    (selected === undefined || rules.some((id) => selected.includes(id))) &&
    selects(source, facts.source) &&
    selects(gateway, facts.gateway) &&
    selects(connection, facts.connection) &&
    selects(classes, facts.dataClass) &&
    selectsModel(model, facts);
}

/** The columns of a CSV file. Their order is part of the format, so add new ones at the end. */
const decisionColumns: readonly ExportColumn<DecisionRecord>[] = [
  ["id", ({ id }) => id],
  ["at", ({ at }) => at],
  ["organizationId", ({ facts }) => facts.organization],
  ["userId", ({ facts }) => facts.user],
  ["keyId", ({ facts }) => facts.key],
  ["source", ({ facts }) => facts.source],
  ["dataClass", ({ facts }) => facts.dataClass],
  ["model", ({ facts }) => formatModelId(facts)],
  ["connection", ({ facts }) => facts.connection],
  ["effect", ({ effect }) => effect],
  ["rules", ({ rules }) => rules.join(" ")],
  ["reason", ({ reason }) => reason ?? null],
  ["policyVersion", ({ policyVersion }) => policyVersion],
  ["firstDecisionId", ({ firstDecisionId }) => firstDecisionId],
  ["tools", ({ facts }) => facts.tools],
  ["images", ({ facts }) => facts.images],
  ["structuredOutput", ({ facts }) => facts.structuredOutput],
  ["estimatedInputTokens", ({ facts }) => facts.estimatedInputTokens],
  ["estimatedOutputTokens", ({ facts }) => facts.estimatedOutputTokens],
  ["estimatedCostNanoUsd", ({ facts }) => facts.estimatedCostNanoUsd],
  ["serviceTier", ({ facts }) => facts.serviceTier],
  ["requestedModel", ({ choice }) => choice?.requested ?? null],
  ["chosenBy", ({ choice }) => choice?.by ?? null],
  ["refusedBy", ({ refusal }) => refusal?.by ?? null],
  ["refusedBudgetId", ({ refusal }) => (refusal?.by === "budget" ? refusal.budgetId : null)],
  [
    "refusedRateLimitId",
    ({ refusal }) => (refusal?.by === "rate_limit" ? refusal.rateLimitId : null),
  ],
  ["refusedSubject", (decision) => refusedHoldOf(decision)?.subject ?? null],
  ["refusedUnit", (decision) => refusedHoldOf(decision)?.unit ?? null],
  ["refusedNeeded", (decision) => refusedHoldOf(decision)?.needed ?? null],
  ["refusedLeft", (decision) => refusedHoldOf(decision)?.left ?? null],
  ["refusedParam", ({ refusal }) => (refusal?.by === "price" ? refusal.param : null)],
  ["embeddings", ({ facts }) => facts.embeddings ?? false],
];

function refusedHoldOf({ refusal }: DecisionRecord) {
  return refusal?.by === "budget" || refusal?.by === "rate_limit" ? refusal : null;
}
