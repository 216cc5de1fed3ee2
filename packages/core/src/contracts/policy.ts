import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";

/** Decides whether a request is permitted. Pure: its verdict depends only on the facts, not on a store, a network or a clock. */
export interface Policy<Gateway extends string = string> {
  readonly contract: 1;
  /** Identifies the policy: its `version`, or a hash of its rules. */
  readonly version: string;
  /** The gateways and data classes that its rules name. `createGateway` rejects unknown ones. */
  readonly gateways: readonly Gateway[];
  /** The model patterns that its rules name. `createGateway` rejects those of virtual gateways. Default: none. */
  readonly models?: readonly string[];
  readonly dataClasses: readonly string[];
  /** The model ids that its rules fall back to. `createGateway` rejects those of unknown gateways. */
  readonly fallbacks: readonly string[];
  /**
   * `ignore`: `facts.session` is always absent, so Tollgate doesn't look up the Session. `read`: the policy gets it.
   * `raise`: in addition, no request's class may be below that of the Session it continues.
   */
  readonly sessions: "ignore" | "read" | "raise";
  /**
   * Whether its verdict ignores the estimates. If so, calls that differ only in them share one verdict. Default `false`: it
   * decides on each call.
   */
  readonly ignoresEstimates?: boolean;
  /** `dataClasses` is the configured order, the least sensitive first. */
  decide(facts: PolicyFacts, dataClasses: readonly string[]): Verdict;
}
