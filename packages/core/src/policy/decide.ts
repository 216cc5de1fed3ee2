import type { Policy } from "../contracts/policy.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";
import { isVerdict } from "./is-verdict.ts";

/** The policy where none is configured: everything is permitted, and recorded as such. */
export const permitAll: Policy<never> = {
  contract: 1,
  version: "none",
  gateways: [],
  dataClasses: [],
  fallbacks: [],
  sessions: "ignore",
  ignoresEstimates: true,
  decide: () => ({ effect: "permit", rules: ["no-policy"] }),
};

/** The verdict on a request: the key's own models first, then the policy. One that throws, or says nonsense, denies. */
export function decide(
  policy: Policy,
  facts: PolicyFacts,
  {
    allowlists,
    dataClasses,
  }: {
    readonly allowlists: readonly (readonly string[])[];
    readonly dataClasses: readonly string[];
  },
): Verdict {
  if (!allowlists.every((patterns) => selectsModel(patterns, facts))) {
    return { effect: "deny", rules: ["key-models"], reason: "The API key is not for this model." };
  }
  try {
    const verdict = policy.decide(facts, dataClasses);
    return isVerdict(verdict) ? verdict : failed;
  } catch {
    return failed;
  }
}

const failed: Verdict = {
  effect: "deny",
  rules: ["policy-error"],
  reason: "The policy failed to decide.",
};
