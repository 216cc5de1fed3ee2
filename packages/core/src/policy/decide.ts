import type { Policy } from "../contracts/policy.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import type { Obligations } from "../domain/obligations.ts";
import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";
import { isTierName } from "../domain/service-tier.ts";
import { synchronous } from "../kernel/synchronous.ts";

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
  // A policy can't change what its decision records.
  Object.freeze(facts.session);
  return verdictOf(policy, Object.freeze(facts), dataClasses);
}

/**
 * Returns a copy of a policy's verdict, or a denial if the policy throws or returns anything else: one written in JavaScript
 * can.
 */
export function verdictOf(
  policy: Policy,
  facts: PolicyFacts,
  dataClasses: readonly string[],
): Verdict {
  try {
    const { effect, rules, reason, obligations } = synchronous(policy.decide(facts, dataClasses));
    const verdict = structuredClone({
      effect,
      rules,
      ...(reason === undefined ? {} : { reason }),
      ...(obligations === undefined ? {} : { obligations: membersOf(obligations) }),
    });
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

function isVerdict({ effect, rules, reason, obligations }: Verdict): boolean {
  return (
    (effect === "permit" || effect === "deny") &&
    isListOfText(rules) &&
    (reason === undefined || typeof reason === "string") &&
    (obligations === undefined || areObligations(obligations))
  );
}

type Check = (value: unknown) => boolean;

/** Checks the value of each obligation. */
const obligationChecks: Readonly<Record<string, Check>> = {
  fallbacks: isListOfText,
  maxOutputTokens: (cap) => Number.isSafeInteger(cap) && Number(cap) > 0,
  transcript: (keep) => keep === "full" || keep === "digest",
  serviceTier: isTierName,
  connection: (ownership) => ownership === "customer",
} satisfies Record<keyof Obligations, Check>;

/** A copy with the obligations that a prototype or a getter defines too: a permit must not lose a condition. */
function membersOf(obligations: Obligations): Obligations {
  const known = Object.keys(obligationChecks).map((name) => [name, Reflect.get(obligations, name)]);
  const defined = known.filter(([, value]) => value !== undefined);
  return { ...structuredClone(obligations), ...Object.fromEntries(defined) };
}

/** Rejects unknown names: a mistyped obligation must not be lost. */
function areObligations(obligations: Obligations): boolean {
  return Object.entries(obligations).every(
    ([name, value]) => value === undefined || obligationChecks[name]?.(value) === true,
  );
}

function isListOfText(list: unknown): boolean {
  return Array.isArray(list) && list.every((item) => typeof item === "string");
}
