/** Policies: rules or functions that turn facts into a verdict. */
export type { Policy } from "./contracts/policy.ts";
export type { Obligations } from "./domain/obligations.ts";
export type { OneOrMany } from "./domain/pattern.ts";
export type { ConnectionOwnership, PolicyFacts, Verdict } from "./domain/policy-decision.ts";
export {
  combine,
  definePolicy,
  type FunctionPolicy,
  type RulePolicy,
} from "./policy/define-policy.ts";
export {
  type ClassRange,
  forbid,
  type PermitOptions,
  permit,
  type Rule,
  type RuleMatch,
  type RuleOptions,
} from "./policy/rules.ts";
