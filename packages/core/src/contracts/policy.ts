import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";

/** Decides whether a request may be made. Pure: it knows no store, network or clock, and its answer follows from the facts. */
export interface Policy<Gateway extends string = string> {
  readonly contract: 1;
  /** Tells which policy decided: the version it was given, else a hash of its rules. */
  readonly version: string;
  /** The gateways and model patterns its rules name; unknown gateways are refused at start. */
  readonly gateways: readonly Gateway[];
  decide(facts: PolicyFacts): Verdict;
}
