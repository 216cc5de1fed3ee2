import type { Policy } from "../contracts/policy.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import type { Obligations } from "../domain/obligations.ts";
import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";
import { isTierName } from "../domain/service-tier.ts";

/** The policy of a gateway without one: it permits every request, and decisions say so. */
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

/** Decides on a request: first the key's allowlists, then the policy. A policy that throws or returns no verdict denies. */
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
    return {
      effect: "deny",
      rules: ["key-models"],
      reason: "This API key isn't allowed to use this model.",
    };
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

/** A function policy written in JavaScript can return anything, and only a verdict may permit. */
function isVerdict(verdict: Verdict): boolean {
  return (
    (verdict?.effect === "permit" || verdict?.effect === "deny") &&
    isListOfText(verdict.rules) &&
    (verdict.reason === undefined || typeof verdict.reason === "string") &&
    (verdict.obligations === undefined || areObligations(verdict.obligations))
  );
}

/** Checks the value of each obligation. */
const obligationChecks: Readonly<Record<keyof Obligations, (value: unknown) => boolean>> = {
  fallbacks: isListOfText,
  maxOutputTokens: (cap) => Number.isSafeInteger(cap) && Number(cap) > 0,
  transcript: (keep) => keep === "full" || keep === "digest",
  serviceTier: isTierName,
  connection: (ownership) => ownership === "customer",
};

const checks = Object.entries(obligationChecks);

function areObligations(obligations: Obligations): boolean {
  if (typeof obligations !== "object" || obligations === null) return false;
  return checks.every(([name, isValid]) => {
    const value: unknown = Reflect.get(obligations, name);
    return value === undefined || isValid(value);
  });
}

function isListOfText(list: unknown): boolean {
  return Array.isArray(list) && list.every((item) => typeof item === "string");
}
