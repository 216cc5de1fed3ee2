import type { Owner, PolicyDecision, Verdict } from "@tollgate/core/store";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

/** A decision and its owner as the parameters of its row. */
export function decisionToRow(
  owner: Owner,
  decision: PolicyDecision,
  sequence: number,
): SqlParameters {
  const { id, at, facts, policyVersion, firstDecisionId, refusal } = decision;
  return {
    organization_id: owner.organizationId,
    id,
    user_id: owner.userId,
    key_id: owner.keyId,
    effect: decision.effect,
    at,
    verdict: JSON.stringify(verdictOf(decision)),
    facts: JSON.stringify(facts),
    policy_version: policyVersion,
    first_decision_id: firstDecisionId,
    refused_by: refusal?.by ?? null,
    refusal: refusal && JSON.stringify(refusal),
    sequence,
  };
}

/** The members of a decision without their own columns. */
export function verdictOf({ effect, rules, reason, obligations, choice }: PolicyDecision): object {
  // The type requires every member, the optional ones too. JSON leaves out those that are undefined.
  const verdict: Readonly<Record<keyof Verdict | "choice", unknown>> = {
    effect,
    rules,
    reason,
    obligations,
    choice,
  };
  return verdict;
}

/** The decision in a row. */
export function decisionFromRow(row: unknown): PolicyDecision {
  const read = readRow(row);
  return {
    ...read.json<Verdict & Pick<PolicyDecision, "choice">>("verdict"),
    id: read.text("id"),
    at: read.integer("at"),
    facts: read.json("facts"),
    policyVersion: read.text("policy_version"),
    firstDecisionId: read.textOrNull("first_decision_id"),
    refusal: read.textOrNull("refusal") === null ? null : read.json("refusal"),
  };
}
