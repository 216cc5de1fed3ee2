import type { Policy } from "../contracts/policy.ts";
import type { Verdict } from "../domain/policy-decision.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { strictest } from "./strictest.ts";

/**
 * Several policies as one: all must permit. A denial names the rules of every policy that denied; obligations add up to
 * the strictest, and fallbacks are those of the first policy that has any. Sessions are raised if any policy raises them.
 */
export function combine<const Policies extends readonly Policy<string>[]>(
  ...policies: Policies
): Policy<Policies[number]["gateways"][number]> {
  if (policies.length === 0)
    throw new GatewayError("invalid_configuration", "combine needs at least one policy.");
  return {
    contract: 1,
    version: policies.map((policy) => policy.version).join("+"),
    gateways: policies.flatMap((policy) => policy.gateways),
    dataClasses: policies.flatMap((policy) => policy.dataClasses),
    fallbacks: policies.flatMap((policy) => policy.fallbacks),
    sessions: strictestSessions(policies.map(({ sessions }) => sessions)),
    ignoresEstimates: policies.every(({ ignoresEstimates }) => ignoresEstimates === true),
    decide(facts, dataClasses) {
      const verdicts = policies.map((policy) => policy.decide(facts, dataClasses));
      const denials = verdicts.filter((verdict) => verdict.effect === "deny");
      return denials.length > 0
        ? mergeVerdicts("deny", denials)
        : mergeVerdicts("permit", verdicts);
    },
  };
}

function strictestSessions(all: readonly Policy["sessions"][]): Policy["sessions"] {
  if (all.includes("raise")) return "raise";
  return all.includes("read") ? "read" : "ignore";
}

function mergeVerdicts(effect: Verdict["effect"], verdicts: readonly Verdict[]): Verdict {
  const reason = verdicts.find((verdict) => verdict.reason !== undefined)?.reason;
  return {
    effect,
    rules: verdicts.flatMap((verdict) => verdict.rules),
    ...(reason === undefined ? {} : { reason }),
    ...(effect === "deny"
      ? {}
      : { obligations: strictest(verdicts.map(({ obligations }) => obligations ?? {})) }),
  };
}
