import type { PolicyDecision } from "../domain/policy-decision.ts";
import { toIso } from "./tenant.ts";

/** A recorded policy decision, permitted or denied. */
export interface DecisionRecord extends Omit<PolicyDecision, "at"> {
  readonly at: string;
}

export function toDecisionRecord(decision: PolicyDecision): DecisionRecord {
  return { ...decision, at: toIso(decision.at) };
}
