import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";

/** Decides whether a request may be made. Pure: it knows no store, network or clock, and its answer follows from the facts. */
export interface Policy<Gateway extends string = string> {
  readonly contract: 1;
  /** Tells which policy decided: the version it was given, else a hash of its rules. */
  readonly version: string;
  /** The gateways and data classes its rules name: unknown ones are refused at start. */
  readonly gateways: readonly Gateway[];
  readonly dataClasses: readonly string[];
  /** The model ids its rules fall back to: one of an unknown gateway is refused at start. */
  readonly fallbacks: readonly string[];
  /**
   * `ignore`: `facts.session` is always absent, so Tollgate doesn't look up the Session. `read`: the policy gets it.
   * `raise`: in addition, no request's class may be below that of the Session it continues.
   */
  readonly sessions: "ignore" | "read" | "raise";
  /**
   * Whether its verdict follows from the facts without the estimates: then calls that differ in nothing else share one
   * verdict. Default `false`: it decides on each call.
   */
  readonly ignoresEstimates?: boolean;
  /** `dataClasses` is the configured order, the least sensitive first. */
  decide(facts: PolicyFacts, dataClasses: readonly string[]): Verdict;
}
